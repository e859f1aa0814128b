//! Questions about ATM lines from public pages: the right values, by `aerostat overhead` or by a small lab.
//!
//! Each test has the address of its page, and says where the answer there is another one. `docs/dsl.md` has the same
//! questions as a table.

use crate::overhead::rows;
use crate::{json, ok};
use aerostat_testing::command::{lab_file, scratch};
use aerostat_wire::line::Encapsulation;
use serde_json::Value;

/// Cell of the table of all encapsulations.
fn of(encapsulation: &str, column: &str) -> Value {
    let all = rows(&[]);
    let row = all.iter().find(|row| row["encapsulation"] == encapsulation);
    row.expect("an encapsulation")[column].clone()
}

/// Row of one packet.
fn packet(encapsulation: &str, octets: u16) -> Value {
    rows(&[encapsulation, &octets.to_string()]).remove(0)
}

/// Row of one packet on a line of this rate.
fn carried(encapsulation: &str, octets: u16, rate: &str) -> Value {
    rows(&[encapsulation, &octets.to_string(), "--rate", rate]).remove(0)
}

/// Page: <https://blog.ipspace.net/2009/03/adsl-overhead.html>. It counts 8 octets of LLC and SNAP, with a doubt of its
/// own, where a bridged PDU has 10, and so 38 for PPPoE. It leaves out the padding: packets of 500 octets lose 21 % of
/// the line, where it has 16 %.
#[test]
fn pppoe_with_llc_costs_40_octets_and_the_padding() {
    assert_eq!(of("pppoe-llcsnap", "overhead_octets"), 40);
    let row = packet("pppoe-llcsnap", 500);
    assert_eq!(row["line_octets"], 636);
    assert_eq!(row["efficiency"], 0.7862);
}

/// Page: <https://github.com/RMerl/asuswrt-merlin/issues/1477>. The answer there says that LLC and VC multiplexing are
/// of PPPoA alone. PPPoE on a line with cells has both, and 8 octets can be a cell.
#[test]
fn pppoe_has_llc_or_vc_multiplexing_too() {
    assert_eq!(of("pppoe-llcsnap", "overhead_octets"), 40);
    assert_eq!(of("pppoe-vcmux", "overhead_octets"), 32);
    assert_eq!(packet("pppoe-llcsnap", 64)["cells"], 3);
    assert_eq!(packet("pppoe-vcmux", 64)["cells"], 2);
}

/// Page: <https://liquisearch.com/maximum_transmission_unit/atm_backbones_an_example_of_mtu_tuning>. Its MTU is right.
#[test]
fn an_mtu_of_1478_fills_31_cells_of_pppoa() {
    let full = packet("pppoa-vcmux", 1478);
    assert_eq!(
        (&full["cells"], &full["padding_octets"]),
        (&31.into(), &0.into())
    );
    assert_eq!(packet("pppoa-vcmux", 1479)["cells"], 32);
}

/// Page: <https://sonicwall.com/en-us/support/knowledge-base/170505851231244>. It has 1452 as the best MTU of PPPoE,
/// which is that of VC multiplexing with the FCS alone; its sum has the FCS, and no header of LLC.
#[test]
fn the_mtu_that_fills_31_cells_of_pppoe_depends_on_llc_and_the_fcs() {
    for (encapsulation, fits, cells_of_1452) in [
        ("pppoe-llcsnap", 1448, 32),
        ("pppoe-llcsnap-fcs", 1444, 32),
        ("pppoe-vcmux", 1456, 31),
        ("pppoe-vcmux-fcs", 1452, 31),
    ] {
        assert_eq!(packet(encapsulation, 1440)["cells"], 31);
        assert_eq!(packet(encapsulation, 1440)["fits_octets"], fits);
        assert_eq!(packet(encapsulation, 1452)["cells"], cells_of_1452);
    }
}

/// Page: <https://www.adslnation.com/support/knowledgebase/ht003.php>. It has 1458 as the largest packet of PPPoA,
/// whose headers are said to take 42 octets of 1500. They take none of them, and 10 of the cells: 1500 is allowed, and
/// 1478 uses the line best. The tunnel behind the line may allow less.
#[test]
fn pppoa_carries_packets_of_1500_octets() {
    assert_eq!(of("pppoa-vcmux", "mtu_octets"), 1500);
    assert_eq!(of("pppoa-vcmux", "overhead_octets"), 10);
    let sizes = rows(&["pppoa-vcmux", "1458", "1478", "1500"]);
    let shares: Vec<f64> = sizes
        .iter()
        .map(|row| row["efficiency"].as_f64().unwrap())
        .collect();
    assert_eq!(shares, [0.8874, 0.8996, 0.8844]);
    assert_eq!(sizes[0]["padding_octets"], 20);
}

/// Page: <https://support.aa.net.uk/index.php?title=ATM_overheads_options&oldid=11952>. Its cells are right. TCP has
/// 1460 octets of 1500, where the page has 1480: it takes off one header of the two.
#[test]
fn a_line_of_24_mbps_carries_21_of_ip() {
    let row = carried("pppoa-vcmux", 1500, "24Mbps");
    assert_eq!(row["cells"], 32);
    assert_eq!(row["packets_per_second"], 1768.87);
    assert_eq!(row["ip_kbps"], 21226.42);
    // The cells per second of the page, and the payload of TCP.
    let packets = row["packets_per_second"].as_f64().unwrap();
    assert_eq!((32.0 * packets) as u64, 56_603);
    assert_eq!(
        (packets * 8.0 * (1500 - 20 - 20) as f64 / 1e3) as u64,
        20_660
    );
}

/// Page: <http://blog.farnz.org.uk/2010/03/calculating-number-of-voip-channels-you.html>. Its cells are right,
/// and five of its six numbers of calls: 8 calls with PPPoA are 848 kbit/s, so a line of 832 carries 7. Packets are of
/// G.711 each 20 ms, with IPv4 or IPv6. With the FCS, which the page leaves out, PPPoE needs the sixth cell for IPv4.
#[test]
fn telephone_calls_that_fit_a_line() {
    for (encapsulation, octets, rate, cells, calls) in [
        ("pppoa-vcmux", 200, "448kbps", 5, 4),
        ("pppoa-vcmux", 200, "832kbps", 5, 7),
        ("pppoe-llcsnap", 200, "832kbps", 5, 7),
        ("pppoe-llcsnap", 220, "448kbps", 6, 3),
        ("pppoe-llcsnap", 220, "832kbps", 6, 6),
        ("pppoa-vcmux", 200, "2Mbps", 5, 18),
        ("pppoe-llcsnap", 220, "2Mbps", 6, 15),
        ("pppoe-llcsnap-fcs", 200, "832kbps", 6, 6),
    ] {
        let row = carried(encapsulation, octets, rate);
        assert_eq!(row["cells"], cells, "{encapsulation} {octets}");
        let found = row["packets_per_second"].as_f64().unwrap() / 50.0;
        assert_eq!(found as u64, calls, "{encapsulation} {octets} {rate}");
    }
}

/// Page: <https://github.com/dtaht/sch_cake/issues/129>. The answer is right: cake counts from the IP header, so that
/// nothing is taken off for an Ethernet. The statistics shown there have the sizes of the line, too.
#[test]
fn cake_counts_from_the_ip_header() {
    assert_eq!(of("pppoa-vcmux", "overhead_octets"), 10);
    assert_eq!(packet("pppoa-vcmux", 40)["line_octets"], 106);
    assert_eq!(packet("pppoa-vcmux", 1478)["line_octets"], 1643);
}

/// Page: <https://github.com/tohojo/sqm-scripts/issues/74>. The value of the question is right: `stab` counts the 14
/// octets of the Ethernet between router and modem, which do not cross a line with PPPoA.
#[test]
fn stab_of_pppoa_behind_an_ethernet_is_negative() {
    assert_eq!(of("pppoa-vcmux", "stab_octets"), -4);
}

/// Page: <http://edseek.com/archives/2006/03/13/linux-qos-tc-and-accounting-for-atm-overhead/>. It is right: an
/// acknowledgement of 40 octets needs two cells with every encapsulation except one.
#[test]
fn an_acknowledgement_needs_two_cells_with_all_encapsulations_except_one() {
    let alone: Vec<&str> = Encapsulation::ALL
        .map(Encapsulation::name)
        .into_iter()
        .filter(|one| packet(one, 40)["cells"] == 1)
        .collect();
    assert_eq!(alone, ["ipoa-vcmux"]);
    assert_eq!(packet("pppoe-llcsnap-fcs", 40)["line_octets"], 106);
}

/// Page: <https://github.com/moeller0/ATM_overhead_detector/issues/9>. It has 44 and 40 for PPPoE: with the FCS and
/// without. The mpu of 96 is that of two cells, and changes nothing: no packet needs fewer.
#[test]
fn the_fcs_makes_44_of_40_and_the_mpu_of_pppoe_changes_no_cell() {
    assert_eq!(of("pppoe-llcsnap-fcs", "overhead_octets"), 44);
    assert_eq!(of("pppoe-llcsnap-fcs", "mpu_octets"), 82);
    assert_eq!(of("pppoe-llcsnap", "overhead_octets"), 40);
    assert_eq!(of("pppoe-llcsnap", "mpu_octets"), Value::Null);
    for encapsulation in ["pppoe-llcsnap", "pppoe-llcsnap-fcs"] {
        assert_eq!(packet(encapsulation, 20)["cells"], 96 / 48);
    }
}

/// Page: <https://tof1314.blogspot.com/2013/03/bridged-format-rfc-1483-pdu.html>, of a router's bridged PVC, as RBE has
/// it. The dump of a ping of 100 octets has PID 0007 and 116 octets behind it, a PDU of 124; the length printed beside
/// it is 4 more.
#[test]
fn a_bridged_pdu_of_a_router_has_24_octets_more_than_its_packet() {
    let row = packet("bridged-llcsnap", 100);
    assert_eq!(row["sdu_octets"], 8 + 116);
    assert_eq!(row["cells"], 3);
    assert_eq!(packet("bridged-llcsnap-fcs", 100)["sdu_octets"], 128);
}

/// A line of 1 Mb/s with a delay of 1 ms, and pings with so many octets of data each.
fn line(encapsulation: &str, sizes: &[u64]) -> String {
    let ping = |(number, size): (usize, &u64)| {
        let start = 1000 + 200 * number;
        format!(
            ", {{ name: p{size}, from: a, to: b, kind: ping, size: {size}, rate: 15pps, start: {start}ms, duration: 140ms }}"
        )
    };
    let pings: String = sizes.iter().enumerate().map(ping).collect();
    format!(
        "links: [[a, b, {{ rate: 1Mbps, delay: 1ms }}]]\n\
         lines: {{ dsl: {{ subnet: 10.1.0.0/30, encapsulation: {encapsulation} }} }}\n\
         pvcs: [{{ from: a, vc: '8.35', to: b, line: dsl }}]\n\
         hosts:\n  a: {{ elan: dsl, ip: 10.1.0.1 }}\n  b: {{ elan: dsl, ip: 10.1.0.2 }}\n\
         traffic: [{{ name: warm, from: a, to: b, kind: ping, duration: 500ms }}{pings}]\n"
    )
}

/// Page: <https://github.com/moeller0/ATM_overhead_detector/issues/3>. It is right: 32 octets for bridged LLC, found
/// from ping times alone. The largest packet of a step fills its cells, and the time tells how many.
#[test]
fn ping_times_show_the_overhead_of_a_bridged_line() {
    let sizes: Vec<u64> = (16..=132).collect();
    let lab = lab_file("staircase.atm.yml", &line("bridged-llcsnap", &sizes));
    let results = json(&["run", "-q", &lab, "-o", "json"]);
    let cells = |size: &u64| {
        let name = format!("p{size}");
        let flows = results["flows"].as_array().unwrap();
        let flow = flows.iter().find(|flow| flow["name"] == name.as_str());
        let trip = flow.expect("a ping")["rtt_us"]["min"].as_f64().unwrap();
        ((trip / 2.0 - 1000.0) / 424.0).round() as u64
    };
    let steps: Vec<(u64, u64)> = sizes
        .windows(2)
        .filter(|two| cells(&two[0]) != cells(&two[1]))
        .map(|two| (two[0], 48 * cells(&two[0]) - (two[0] + 28)))
        .collect();
    assert_eq!(steps, [(36, 32), (84, 32)]);
}

/// Page: <https://github.com/GNS3/dynamips>, file `common/atm.c`. The ATM bridge of Dynamips and GNS3 puts ten octets
/// in front of a frame, and takes only PDUs that begin with them: it is `bridged-llcsnap`, and a line with the FCS or
/// with VC multiplexing does not reach it.
#[test]
fn the_atm_bridge_of_gns3_speaks_bridged_llc_without_the_fcs() {
    // LLC, OUI 0080C2, PID 0007 and two octets of padding.
    const HEADER: [u8; 10] = [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0];
    let mut spoken = Vec::new();
    for encapsulation in Encapsulation::ALL.map(Encapsulation::name) {
        if !encapsulation.starts_with("bridged-") {
            continue;
        }
        let name = format!("gns3-{encapsulation}");
        let directory = scratch().join(&name);
        let into = directory.to_str().unwrap();
        let lab = lab_file(&format!("{name}.atm.yml"), &line(encapsulation, &[56]));
        ok(&["run", "-q", &lab, "--pcap", into]);
        let recorded = std::fs::read(directory.join("a.pcapng")).unwrap();
        if recorded.windows(HEADER.len()).any(|ten| ten == HEADER) {
            spoken.push(encapsulation);
        }
    }
    assert_eq!(spoken, ["bridged-llcsnap"]);
}
