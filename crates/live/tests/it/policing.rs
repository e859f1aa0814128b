//! Policers in real time: conforming cells pass, however they are moved; other cells are lost as the contract says.

use super::captures::packets;
use super::{Run, seconds};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::LinkId;
use aerostat_live::capture::Form;
use aerostat_node::atm::{Arrivals, CellRate, CellRun, Pdu};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;

/// A CBR connection of 20 000 cells/s over two switches beside a host that fills the links with best effort.
const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc3, delay: 5ms }]]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a:
    on: s1
    elan: w
    ip: 10.0.0.1
    sockets:
      - { name: steady, vc: 0.100, size: 9180, pdus: 90, rate: 100pps }
      - { name: noise, vc: 0.200, size: 65000, pdus: 90, rate: 100pps }
  b: { on: s2, elan: w, ip: 10.0.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] }
pvcs:
  - { from: a, vc: 0.100, to: b, qos: 'cbr:max_pcr=20000', police: true }
  - { from: a, vc: 0.200, to: b }
";

fn lab(text: &str) -> Lab {
    match aerostat_lab::parse("policing.atm.yml", text, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    }
}

/// For each switch, cells received on permanent connections, and cells that the policer dropped.
fn policed(run: &Run<'_>) -> Vec<(u64, u64)> {
    let switches = run.world.nodes().filter_map(|(.., node)| node?.as_switch());
    let of = |info: aerostat_node::switch::PermanentInfo| (info.cells[0], info.policed[0]);
    switches
        .filter_map(|switch| switch.permanent().next().map(of))
        .collect()
}

#[test]
fn a_contract_that_is_kept_loses_nothing_beside_best_effort() {
    let lab = lab(LAB);
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    for late in [0, 3] {
        let mut run = Run::start(&lab, &builder, Duration::from_millis(late));
        run.until(seconds(4));
        // 90 PDUs of 192 cells. Every switch has seen all of them.
        assert_eq!(policed(&run), [(17_280, 0); 2], "a driver {late} ms late");
    }
}

/// Cells that each switch drops if `peer` sends `pps` PDUs of `octets` each second for two seconds, each PDU at once.
fn from_outside(text: &str, pps: u64, octets: usize) -> Vec<(u64, u64)> {
    let lab = lab(text);
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    let peer = lab.find("peer").unwrap();
    run.world.outside_link(peer, true, run.now);
    let mut line = Arrivals::new(CellRate::OC3);
    for n in 0..2 * pps {
        let at = Instant::from_nanos(n * 1_000_000_000 / pps);
        run.until(at);
        let cells = CellRun::whole(Pdu::new(vec![7; octets]), Vc::new(0, 100));
        let timing = line.take(cells.count.into(), at);
        run.world.outside_cells(peer, cells.timed(timing), at);
    }
    run.until(seconds(3));
    policed(&run)
}

const OUTSIDE: &str = "
switches: { s1: {}, s2: {} }
links:
  - [s1, s2, { rate: oc3, delay: 5ms }]
  - [s1, { name: peer, rate: oc3, udp: { local: 127.0.0.1:10001, peer: 127.0.0.1:10002 } }]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts: { b: { on: s2, elan: w, ip: 10.0.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] } }
pvcs: [{ from: peer, vc: 0.100, to: b, qos: 'CONTRACT', police: true }]
";

#[test]
fn a_contract_that_is_exceeded_loses_what_exceeds_it() {
    let text = OUTSIDE.replace("CONTRACT", "cbr:max_pcr=20000,max_cdv=250");
    let [(came, lost), (left, again)] = from_outside(&text, 20, 9180)[..] else {
        panic!("two switches");
    };
    // 192 cells at distance t = 2.831 us against T = 50 us and tau = 250 us: 1 + floor((191 t + tau) / T) = 16 pass.
    assert_eq!((came, lost), (40 * 192, 40 * (192 - 16)));
    assert_eq!((left, again), (came - lost, 0), "nobody judges twice");
}

#[test]
fn a_peer_outside_that_does_not_shape_keeps_its_contract_on_the_average() {
    let text = OUTSIDE.replace("CONTRACT", "cbr:max_pcr=2000");
    let passed = from_outside(&text, 100, 950);
    assert_eq!(passed, [(4000, 0); 2], "2000 cells/s");
    // Twice the rate: the cells that the contract allows in two seconds pass, plus once the tolerance of 250 ms.
    let (came, lost) = from_outside(&text, 200, 950)[0];
    assert_eq!(came, 8000);
    assert!((came - lost).abs_diff(4000 + 500) < 30, "{lost}");
    // A contract's own tolerance is used if given: of 20 cells in 54 us, 1 ms lets three pass.
    let text = OUTSIDE.replace("CONTRACT", "cbr:max_pcr=2000,max_cdv=1000");
    assert_eq!(from_outside(&text, 100, 950)[0], (4000, 3400));
}

/// Recorded cells: whether the first end of their link sent them, and their times in nanoseconds.
type Recorded = Vec<(bool, u64)>;

/// The recorded cells of the link to `peer`, which sends PDUs of 1 to 41 cells, up to five of them together: whether
/// the first end sent them, and the times. Then what the policers have counted.
fn recorded(lab: &Lab, both_ends: bool) -> (Recorded, Vec<(u64, u64)>) {
    let builder = Builder::new(lab, 7, Flavour::Embedded);
    let mut run = Run::start(lab, &builder, Duration::ZERO);
    let peer = lab.find("peer").unwrap();
    run.world.outside_link(peer, true, run.now);
    let form = Form {
        both_ends,
        cells: true,
    };
    let link = lab.links.iter().position(|link| link.name == "peer-s1");
    let captures = &mut run.world.captures;
    let chunks = captures.start(lab, &[LinkId(link.unwrap())], form, 0);
    let chunks = chunks.unwrap();
    let (mut line, mut file) = (Arrivals::new(CellRate::OC3), Vec::new());
    for n in 0_u64..60 {
        let at = Instant::from_nanos(n * 7_919_333 + n % 7 * 613_111);
        run.until(at);
        for pdu in 0..n % 5 + 1 {
            let octets = vec![7; 40 + 480 * pdu as usize];
            let cells = CellRun::whole(Pdu::new(octets), Vc::new(0, 100));
            let timing = line.take(cells.count.into(), at);
            run.world.outside_cells(peer, cells.timed(timing), at);
        }
        file.extend(chunks.try_iter().flatten());
    }
    run.until(seconds(1));
    file.extend(chunks.try_iter().flatten());
    assert_eq!(run.world.captures.dropped(), 0, "the recording is whole");
    let cells = packets(&file).into_iter();
    (cells.map(|cell| (cell.0, cell.1)).collect(), policed(&run))
}

/// Many PDUs come in one read, so a recording of their cells must have the times that the policer uses. The count is
/// that of the continuous-state leaky bucket, in nanoseconds times the rate; the policer uses virtual scheduling.
#[test]
fn a_recording_of_cells_from_outside_shows_what_the_policer_judged() {
    let rate = 20_000;
    let lab = lab(&OUTSIDE.replace("CONTRACT", "cbr:max_pcr=20000,max_cdv=1000"));
    let (cells, counted) = recorded(&lab, false);
    let (mut level, mut last, mut came, mut above) = (0_u64, 0, 0, 0);
    for &(_, time) in cells.iter().filter(|(sent, _)| *sent) {
        came += 1;
        let drained = level.saturating_sub((time - last) * rate);
        if drained > 1_000_000 * rate {
            above += 1;
        } else {
            (level, last) = (drained + 1_000_000_000, time);
        }
    }
    assert_eq!(counted[0], (came, above));
    assert!(above > 300 && came > above + 300, "{above} of {came}");
    // With a tap at both ends the same cells arrive 5 µs later, by the same clock.
    let arrivals: Vec<_> = recorded(&lab, true).0;
    let arrive = |time: u64| arrivals.contains(&(false, time + 5000));
    assert!(cells.iter().all(|(sent, time)| !sent || arrive(*time)));
}
