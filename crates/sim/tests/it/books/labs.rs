//! Random labs: switches, subnets of LANE and Classical IP, permanent connections, programs, traffic of all kinds,
//! links that lose cells, small queues, policers, faults.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::Write;

/// Octets of IP that a LANE of 1516 octets and a Classical IP subnet carry.
const MTU: [usize; 2] = [1500, 9180];

/// A lab as its file, and the choices that made it.
#[derive(Clone, Debug)]
pub(super) struct RandomLab {
    shape: Shape,
    switches: usize,
    links: Vec<Line>,
    /// True for Classical IP.
    subnets: Vec<bool>,
    mpoa: bool,
    router_queue: Option<usize>,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    pvcs: Vec<Pvc>,
    programs: Vec<Program>,
    faults: Vec<Fault>,
    cut_short: bool,
    seed: u32,
}

/// Lines that lose cells and invert bits, if any.
#[derive(Clone, Copy, Debug)]
enum Lossy {
    Nothing,
    FirstTrunk,
    FirstHost,
    All,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Chain,
    Star,
    Ring,
    Parallel,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    rate: &'static str,
    delay: &'static str,
    loss: &'static str,
    bit_errors: &'static str,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    switch: usize,
    subnet: usize,
    line: Line,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    ends: [usize; 2],
    kind: Kind,
    start: Option<u32>,
    ms: u32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Udp {
        rate: u32,
        size: usize,
        poisson: bool,
    },
    Ping {
        rate: u32,
        size: usize,
    },
    Tcp,
    Rr(usize),
    Voice,
}

#[derive(Clone, Copy, Debug)]
struct Pvc {
    ends: [usize; 2],
    pcr: Option<u32>,
    police: bool,
}

#[derive(Clone, Copy, Debug)]
struct Program {
    ends: [usize; 2],
    pdus: u32,
    size: usize,
    rate: u32,
    echo: bool,
    pcr: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    at: u32,
    what: &'static str,
    whom: usize,
    mended_after: Option<u32>,
}

fn line() -> impl Strategy<Value = Line> {
    (
        select(vec!["oc3", "oc3", "25.6", "10Mbps", "2Mbps"]),
        select(vec!["5us", "5us", "200us", "5ms"]),
        select(vec!["0", "0.0005", "0.01"]),
        select(vec!["0", "0", "1e-6"]),
    )
        .prop_map(|(rate, delay, loss, bit_errors)| Line {
            rate,
            delay,
            loss,
            bit_errors,
        })
}

fn flow(hosts: usize) -> impl Strategy<Value = Flow> {
    let rate = select(vec![20_u32, 100, 400, 1500]);
    let size = select(vec![24_usize, 100, 500, 1000, 1472, 5000, 9152]);
    let kind = prop_oneof![
        4 => (rate, size, any::<bool>()).prop_map(|(rate, size, poisson)| Kind::Udp { rate, size, poisson }),
        2 => (select(vec![10_u32, 50, 200]), select(vec![0_usize, 56, 1472]))
            .prop_map(|(rate, size)| Kind::Ping { rate, size }),
        2 => Just(Kind::Tcp),
        1 => select(vec![1_usize, 400, 4000]).prop_map(Kind::Rr),
        1 => Just(Kind::Voice),
    ];
    let start = prop_oneof![2 => Just(None), 1 => (0_u32..3000).prop_map(Some)];
    // Connections that are long enough to be there when one of their hosts restarts.
    let long = prop_oneof![1 => Just(0), 1 => 500_u32..2500];
    (0..hosts, 1..hosts, kind, start, (100_u32..900, long)).prop_map(
        move |(from, step, kind, start, (ms, more))| Flow {
            ends: [from, (from + step) % hosts],
            kind,
            start,
            ms: match kind {
                Kind::Tcp | Kind::Rr(_) => ms + more,
                Kind::Udp { .. } | Kind::Ping { .. } | Kind::Voice => ms,
            },
        },
    )
}

fn fault() -> impl Strategy<Value = Fault> {
    let what = vec![
        "host", "end", "end", "switch", "router", "link", "trunk", "bus", "les", "mpc", "change",
        "retrain",
    ];
    (
        500_u32..3500,
        select(what),
        any::<usize>(),
        proptest::option::of(5_u32..1500),
    )
        .prop_map(|(at, what, whom, mended_after)| Fault {
            at,
            what,
            whom,
            mended_after,
        })
}

pub(super) fn labs() -> impl Strategy<Value = RandomLab> {
    (1_usize..=4, 1_usize..=3, 2_usize..=6).prop_flat_map(|(switches, subnets, hosts)| {
        let host = (0..switches, 0..subnets, line()).prop_map(|(switch, subnet, line)| Host {
            switch,
            subnet,
            line,
        });
        let pair = (0..hosts, 1..hosts).prop_map(move |(from, step)| [from, (from + step) % hosts]);
        let pcr = select(vec![None, Some(1000_u32), Some(4000)]);
        let pvc = (pair.clone(), pcr.clone(), any::<bool>()).prop_map(|(ends, pcr, police)| Pvc {
            ends,
            pcr,
            police,
        });
        let program = (
            pair,
            1_u32..60,
            select(vec![40_usize, 1000, 9000]),
            select(vec![20_u32, 200, 2000]),
            any::<bool>(),
            pcr,
        )
            .prop_map(|(ends, pdus, size, rate, echo, pcr)| Program {
                ends,
                pdus,
                size,
                rate,
                echo,
                pcr,
            });
        let shape = select(vec![
            Shape::Chain,
            Shape::Star,
            Shape::Ring,
            Shape::Parallel,
        ]);
        let lossy = select(vec![
            Lossy::Nothing,
            Lossy::Nothing,
            Lossy::FirstTrunk,
            Lossy::FirstHost,
            Lossy::All,
        ]);
        let parts = (
            (shape, vec(line(), 5)),
            vec(any::<bool>(), subnets),
            (any::<bool>(), select(vec![None, Some(3_usize), Some(100)])),
            vec(host, hosts),
            vec(flow(hosts), 1..=6),
            (vec(pvc, 0..=2), vec(program, 0..=2)),
            vec(fault(), 0..=3),
            (any::<bool>(), any::<u32>(), lossy),
        );
        parts.prop_map(
            move |(
                (shape, links),
                subnets,
                (mpoa, queue),
                hosts,
                flows,
                (pvcs, programs),
                faults,
                last,
            )| {
                let mut lab = RandomLab {
                    shape,
                    switches,
                    links,
                    subnets,
                    mpoa,
                    router_queue: queue,
                    hosts,
                    flows,
                    pvcs,
                    programs,
                    faults,
                    cut_short: last.0,
                    seed: last.1,
                };
                lab.clean(last.2);
                lab
            },
        )
    })
}

impl RandomLab {
    fn clean(&mut self, lossy: Lossy) {
        let trunks = self.links.iter_mut().enumerate();
        let trunks = trunks.map(|(at, line)| (at == 0 && matches!(lossy, Lossy::FirstTrunk), line));
        let hosts = self.hosts.iter_mut().enumerate();
        let hosts =
            hosts.map(|(at, host)| (at == 0 && matches!(lossy, Lossy::FirstHost), &mut host.line));
        for (keep, line) in trunks.chain(hosts) {
            if !keep && !matches!(lossy, Lossy::All) {
                (line.loss, line.bit_errors) = ("0", "0");
            }
        }
    }

    fn trunks(&self) -> Vec<(usize, usize)> {
        let last = self.switches - 1;
        let chain = (0..last).map(|at| (at, at + 1));
        match self.shape {
            Shape::Star => (1..=last).map(|at| (0, at)).collect(),
            Shape::Ring if last >= 2 => chain.chain([(last, 0)]).collect(),
            Shape::Parallel if last >= 1 => chain.chain([(0, 1)]).collect(),
            _ => chain.collect(),
        }
    }

    /// The lab file.
    pub(super) fn file(&self) -> String {
        let mut text = format!(
            "seed: {}\nmpoa: {}\n",
            self.seed,
            self.mpoa && self.routed()
        );
        let switches: Vec<_> = (0..self.switches)
            .map(|at| format!("s{at}: {{}}"))
            .collect();
        let _ = writeln!(text, "switches: {{ {} }}", switches.join(", "));
        self.links_text(&mut text);
        self.subnets_text(&mut text);
        self.hosts_text(&mut text);
        self.traffic_text(&mut text);
        self.faults_text(&mut text);
        if self.cut_short {
            text += "until: 4100ms\n";
        } else {
            text += "until: 8s\n";
        }
        text
    }

    /// Costs of packets at a host: one host in two is slow in some way.
    fn time_of(&self, host: usize) -> &'static str {
        match (self.seed >> (3 * host)) % 8 {
            0 => {
                ", cpu: { send: 40us + 70ns/octet, receive: 60us + 80ns/octet, ack: 10us, jitter: 5% }"
            }
            1 => ", cpu: { receive: 3ms, queue: 4, service: fair }",
            2 => ", cpu: { send: 2ms, queue: 3, native: { send: 300us }, lane: { ack: 1us } }",
            3 => ", cpu: { send: 700us, receive: 700us, queue: 20 }",
            4 => ", adapter: { receive: 4000cells/s, buffer: 3 }",
            5 => ", adapter: { receive: 900pdus/s, buffer: 6 }, cpu: { receive: 500us, queue: 5 }",
            _ => "",
        }
    }

    fn routed(&self) -> bool {
        self.subnets.len() > 1
    }

    fn links_text(&self, text: &mut String) {
        let trunks = self.trunks();
        if trunks.is_empty() {
            return;
        }
        *text += "links:\n";
        for (index, (one, other)) in trunks.into_iter().enumerate() {
            let line = self.links[index].text();
            let _ = writeln!(text, "  - [s{one}, s{other}, {{ name: t{index}, {line} }}]");
        }
    }

    fn subnets_text(&self, text: &mut String) {
        let named = |clip: bool| {
            let all = self.subnets.iter().enumerate();
            all.filter(move |(_, kind)| **kind == clip)
                .map(|(at, _)| at)
        };
        let elans: Vec<_> = named(false)
            .map(|at| format!("n{at}: {{ subnet: 10.{at}.0.0/24 }}"))
            .collect();
        if !elans.is_empty() {
            let on = self.switches - 1;
            let _ = writeln!(
                text,
                "lane: {{ on: s{on}, elans: {{ {} }} }}",
                elans.join(", ")
            );
        }
        if named(true).next().is_some() {
            *text += "clip:\n";
        }
        for at in named(true) {
            let members = self.hosts.iter().position(|host| host.subnet == at);
            let server = match members {
                _ if self.routed() => "r".to_owned(),
                Some(host) => format!("h{host}"),
                None => continue,
            };
            let _ = writeln!(
                text,
                "  n{at}: {{ subnet: 10.{at}.0.0/24, server: {server} }}"
            );
        }
        if self.routed() {
            let legs: Vec<_> = (0..self.subnets.len())
                .map(|at| format!("n{at}: 10.{at}.0.1"))
                .collect();
            let queue = self.router_queue.map_or(String::new(), |frames| {
                format!(", queue: {frames}, forwarding: 4Mbps")
            });
            let _ = writeln!(
                text,
                "routers: {{ r: {{ on: s0, elans: {{ {} }}{queue} }} }}",
                legs.join(", ")
            );
        }
    }

    fn hosts_text(&self, text: &mut String) {
        *text += "hosts:\n";
        for (number, host) in self.hosts.iter().enumerate() {
            let Host {
                switch,
                subnet,
                line,
            } = host;
            let _ = write!(
                text,
                "  h{number}: {{ on: s{switch}, elan: n{subnet}, ip: 10.{subnet}.0.{}, link: {{ {} }}",
                10 + number,
                line.text()
            );
            let mut programs = Vec::new();
            for (index, program) in self.programs.iter().enumerate() {
                let Program {
                    ends,
                    pdus,
                    size,
                    rate,
                    ..
                } = program;
                let selector = 0xe0 + index;
                if ends[0] == number {
                    let qos = program.pcr.map_or(String::new(), |pcr| {
                        format!(", qos: \"cbr:tx:max_pcr={pcr},rx:max_pcr={pcr}\"")
                    });
                    programs.push(format!(
                        "{{ name: p{index}, call: h{}/{selector:02x}, pdus: {pdus}, size: {size}, rate: {rate}pps{qos} }}",
                        ends[1]
                    ));
                }
                if ends[1] == number {
                    let what = if program.echo { "echo" } else { "sink" };
                    programs.push(format!(
                        "{{ name: l{index}, listen: {what}, selector: \"{selector:02x}\" }}"
                    ));
                }
            }
            if !programs.is_empty() {
                let _ = write!(text, ", sockets: [{}]", programs.join(", "));
            }
            text.push_str(self.time_of(number));
            *text += " }\n";
        }
        // Classical IP uses those between members of one subnet; the others only occupy labels and bandwidth.
        if !self.pvcs.is_empty() {
            *text += "pvcs:\n";
        }
        for (index, Pvc { ends, pcr, police }) in self.pvcs.iter().enumerate() {
            let pcr = pcr.map_or(String::new(), |pcr| {
                format!(", pcr: {pcr}, police: {police}")
            });
            let _ = writeln!(
                text,
                "  - {{ from: h{}, vc: 0.{}, to: h{}{pcr} }}",
                ends[0],
                200 + index,
                ends[1]
            );
        }
    }

    /// The traffic section. Sizes are limited to what the sender's network carries.
    fn traffic_text(&self, text: &mut String) {
        *text += "traffic:\n";
        for (number, flow) in self.flows.iter().enumerate() {
            let clip = self.subnets[self.hosts[flow.ends[0]].subnet];
            let fits = |size: usize| size.min(MTU[usize::from(clip)] - 28);
            let kind = match flow.kind {
                Kind::Udp {
                    rate,
                    size,
                    poisson,
                } => format!(
                    "kind: udp, rate: {rate}pps, size: {}, poisson: {poisson}",
                    fits(size)
                ),
                Kind::Ping { rate, size } => {
                    format!("kind: ping, rate: {rate}pps, size: {}", fits(size))
                }
                Kind::Tcp => "kind: tcp".into(),
                Kind::Rr(size) => format!("kind: rr, size: {size}"),
                Kind::Voice => "kind: voice".into(),
            };
            let start = flow
                .start
                .map_or(String::new(), |ms| format!(", start: {ms}ms"));
            let _ = writeln!(
                text,
                "  - {{ name: f{number}, from: h{}, to: h{}, {kind}{start}, duration: {}ms }}",
                flow.ends[0], flow.ends[1], flow.ms
            );
        }
    }

    /// A link of a host becomes slower or faster for a time, or trains. It gets no errors: [`Lossy`] says which links
    /// have some.
    fn change_text(&self, fault: &Fault, faults: &mut String) {
        let host = fault.whom % self.hosts.len();
        let name = format!("h{host}-s{}", self.hosts[host].switch);
        let delay = ["0us", "300us", "20ms"][fault.whom % 3];
        let values = match fault.whom % 2 {
            0 => format!("delay: {delay}"),
            _ => format!("rate: {{ up: 1Mbps }}, delay: {{ down: {delay} }}"),
        };
        let at = fault.at;
        let _ = match fault.what {
            "retrain" => {
                let time = fault.mended_after.unwrap_or(1);
                writeln!(
                    faults,
                    "  - {{ at: {at}ms, retrain: {name}, duration: {time}ms, {values} }}"
                )
            }
            _ => writeln!(faults, "  - {{ at: {at}ms, change: {name}, {values} }}"),
        };
        if let Some(after) = fault.mended_after {
            let _ = writeln!(
                faults,
                "  - {{ at: {}ms, change: {name}, delay: 5us }}",
                at + after
            );
        }
    }

    fn faults_text(&self, text: &mut String) {
        let mut faults = String::new();
        for fault in &self.faults {
            let whom = |of: usize| fault.whom % of;
            if matches!(fault.what, "change" | "retrain") {
                self.change_text(fault, &mut faults);
                continue;
            }
            let (down, up, name) = match fault.what {
                "host" => ("crash", "restart", format!("h{}", whom(self.hosts.len()))),
                // Sender or receiver of a flow, of one with a connection if there is any.
                "end" => {
                    let calls = |flow: &&Flow| matches!(flow.kind, Kind::Tcp | Kind::Rr(_));
                    let calling: Vec<&Flow> = self.flows.iter().filter(calls).collect();
                    let flow = match calling.len() {
                        0 => &self.flows[whom(self.flows.len())],
                        some => calling[whom(some)],
                    };
                    (
                        "crash",
                        "restart",
                        format!("h{}", flow.ends[fault.at as usize % 2]),
                    )
                }
                "switch" => ("crash", "restart", format!("s{}", whom(self.switches))),
                "router" if self.routed() => ("crash", "restart", "r".into()),
                "link" => {
                    let host = whom(self.hosts.len());
                    let name = format!("h{host}-s{}", self.hosts[host].switch);
                    ("link_down", "link_up", name)
                }
                "trunk" if self.switches > 1 => {
                    let name = format!("t{}", whom(self.trunks().len()));
                    ("link_down", "link_up", name)
                }
                "bus" | "les" if self.subnets.contains(&false) => {
                    ("crash", "restart", format!("lane/{}", fault.what))
                }
                "mpc" if self.mpoa && self.routed() => (
                    "crash",
                    "restart",
                    format!("h{}/mpc", whom(self.hosts.len())),
                ),
                _ => continue,
            };
            let _ = writeln!(faults, "  - {{ at: {}ms, {down}: {name} }}", fault.at);
            if let Some(after) = fault.mended_after {
                let _ = writeln!(faults, "  - {{ at: {}ms, {up}: {name} }}", fault.at + after);
            }
        }
        if !faults.is_empty() {
            *text += "faults:\n";
            *text += &faults;
        }
    }
}

impl Line {
    fn text(&self) -> String {
        let Line {
            rate,
            delay,
            loss,
            bit_errors,
        } = self;
        format!("rate: {rate}, delay: {delay}, loss: {loss}, bit_errors: {bit_errors}")
    }
}
