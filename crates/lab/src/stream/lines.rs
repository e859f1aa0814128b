//! The lines of the stream, as types. The published schema is made of them.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the stream. The version increases when a reader of the former one would be misled.
pub const SCHEMA: &str = "aerostat.events.v1";

/// A line of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Line {
    /// The first line: the lab and the run.
    Head(Head),
    /// A machine.
    Node(Node),
    /// A link.
    Link(Link),
    /// An emulated LAN, a subnet of Classical IP or an ATM line.
    Network(Network),
    /// A permanent connection.
    Pvc(Pvc),
    /// A flow of the lab file.
    Flow(Flow),
    /// Positions for a drawing.
    Layout(Layout),
    /// The way of a packet that was followed.
    Packet(Packet),
    /// State of a connection.
    Call(CallLine),
    /// State of a member of a network.
    Member(MemberLine),
    /// State of a shortcut.
    Shortcut(ShortcutLine),
    /// A fault that lasts.
    Fault(FaultLine),
    /// A message of a protocol on a link.
    Message(Message),
    /// A step that a node reports.
    Story(Story),
    /// A flow starts or ends.
    Traffic(Traffic),
    /// Counters and levels.
    Sample(Sample),
    /// A gathered stream has told everything up to a time.
    Now(Now),
    /// The last line of a stream that has an end.
    End(End),
}

/// The lab and the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Head {
    /// `aerostat.events.v1`.
    pub schema: String,
    /// Name of the lab.
    pub lab: String,
    /// Description of the lab, from its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Seed of all random streams.
    pub seed: u64,
    /// `virtual` or `real`.
    pub time: String,
    /// Version of the program.
    pub version: String,
    /// Time between two samples, ns; each sample is at a multiple of it, except the one at the end. 0 without samples.
    pub sample: u64,
    /// End of the run, ns; missing for a lab that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Text of the lab file, if it has at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `switch`, `lane_server`, `router`, `host`, `outside` or `station`, a host on the Ethernet segment behind a
    /// bridge.
    pub kind: String,
    /// Its IP addresses, each with the name of its network.
    pub addresses: Vec<(String, String)>,
    /// ATM address of an end system, selector 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atm: Option<String>,
    /// The bridging host that a station is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// False if a drawing leaves it out, because the lab is too large.
    pub shown: bool,
    /// Hosts at a switch that a drawing leaves out and counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u64>,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Names of the machines at its ends.
    pub ends: [String; 2],
    /// Port at each end.
    pub ports: [u64; 2],
    /// Rate, delay and impairments: `oc3, 5µs`.
    pub what: String,
    /// Rate, cells per second; that of the faster direction.
    pub rate: f64,
    /// Rates of the directions by the end at which they start, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<[f64; 2]>,
    /// Delay, ns; the longer one of the two directions.
    pub delay: u64,
}

/// An emulated LAN or a subnet of Classical IP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// True for a subnet of Classical IP, false for an emulated LAN.
    pub clip: bool,
    /// True for an ATM line, otherwise left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub line: bool,
    /// Its IP subnet.
    pub subnet: String,
    /// Frame size, server or encapsulation: `frames of 1516`.
    pub what: String,
}

/// A permanent connection of the lab file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Pvc {
    /// Names of the end systems.
    pub ends: [String; 2],
    /// Its label at each end; for a whole path the VPI alone.
    pub labels: [String; 2],
    /// Its traffic in the syntax of `qos(7)`.
    pub qos: String,
}

/// A flow of the lab file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// `tcp`, `udp`, `ping`, `rr`, `voice` or `load`.
    pub kind: String,
}

/// Positions for a drawing, in pixels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Layout {
    /// Width of the drawing.
    pub width: f64,
    /// Height of the drawing.
    pub height: f64,
    /// Boxes of the machines that are shown: name, centre (x, y), width, height.
    pub boxes: Vec<(String, f64, f64, f64, f64)>,
    /// Lines of the links, as paths of SVG, by name.
    pub paths: BTreeMap<String, String>,
    /// Centres of the labels of the links, by name.
    pub labels: BTreeMap<String, (f64, f64)>,
}

/// The way of a packet that was followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Packet {
    /// Flow and number of the packet: `voice:100`.
    pub name: String,
    /// Its ends, its path and its fate in one line.
    pub text: String,
    /// Stages of its way in the order of time.
    pub stages: Vec<Stage>,
}

/// A part of the way of a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stage {
    /// Its beginning, ns.
    pub t: u64,
    /// Its time, ns.
    pub takes: u64,
    /// The node; on a link, the one that sends.
    pub node: String,
    /// The link, if the packet is on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// One sentence.
    pub text: String,
}

/// A message of a protocol on a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    /// Time at which its last cell has left the port, or at which the port dropped it, ns.
    pub t: u64,
    /// The link.
    pub link: String,
    /// The node that sends.
    pub from: String,
    /// The node at the other end of the link.
    pub to: String,
    /// Its VC on this link, `vpi.vci`.
    pub vc: String,
    /// Its protocol.
    pub protocol: String,
    /// Its contents in one line.
    pub text: String,
    /// Reason of the drop, if it was dropped at this link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// The call that carries it, if it is not on a channel of signalling or management.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
}

/// A step that a node reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Story {
    /// Time, ns.
    pub t: u64,
    /// The node.
    pub node: String,
    /// Stable dotted name: protocol, then the event.
    pub event: String,
    /// One sentence.
    pub text: String,
    /// True for the main steps.
    pub milestone: bool,
}

/// A flow starts or ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Traffic {
    /// Time, ns.
    pub t: u64,
    /// The flow.
    pub flow: String,
    /// `started` or `ended`.
    pub state: String,
}

/// Counters since the start of the run, and levels. Only what differs from the sample before is there; what was never
/// told is 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sample {
    /// Time, ns: everything up to it has happened.
    pub t: u64,
    /// Cells by link: sent by its first end, sent by its second end, lost on the link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, [u64; 3]>,
    /// Counters by flow: packets sent, received and lost, octets sent and received, sum of the delays of packets in ns.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, [u64; 6]>,
    /// Cells that wait in the queues of a port, by port (`NODE:PORT`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, u64>,
    /// Cells by id of a call: those sent by the adapters of the caller and of the called end system.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<u64, [u64; 2]>,
}

impl Sample {
    /// True if nothing has changed.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
            && self.flows.is_empty()
            && self.queues.is_empty()
            && self.calls.is_empty()
    }
    /// The two samples as one at the time of the second.
    pub(super) fn merge(mut self, later: Self) -> Self {
        self.t = later.t;
        self.links.extend(later.links);
        self.flows.extend(later.flows);
        self.queues.extend(later.queues);
        self.calls.extend(later.calls);
        self
    }
}

/// Lines by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Messages.
    pub message: u64,
    /// Steps of the story.
    pub story: u64,
    /// Samples.
    pub sample: u64,
}

/// The end of a part of a gathered stream: states are those at this time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Now {
    /// Time, ns.
    pub t: u64,
    /// Messages and steps that were left out since the last such line, because there were too many.
    pub left: Counts,
}

/// Things that a drawing leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct More {
    /// Machines.
    pub nodes: u64,
    /// Messages on the links of these machines, if the stream leaves them out, too.
    pub messages: u64,
    /// Steps of the story of these machines, if the stream leaves them out, too.
    pub story: u64,
}

/// The end of the stream, with what was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct End {
    /// Time, ns.
    pub t: u64,
    /// Lines in the stream.
    pub kept: Counts,
    /// Lines that were left out, because there were too many. Lines of state never are.
    pub thinned: Counts,
    /// Time of the last message before messages were left out, ns; missing if all are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_until: Option<u64>,
    /// Time until which states are exact at every instant, ns; later they are exact at samples alone, at last at the
    /// end. Missing if they always are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_until: Option<u64>,
    /// Changes of state that only a sample has found; 0 unless the program has a mistake.
    pub untold: u64,
    /// Things that a drawing leaves out.
    pub more: More,
}

/// Makes a state and its line: the line has the fields that have changed.
macro_rules! states {
    ($(
        $(#[$about:meta])+
        $state:ident, $line:ident {
            $( $(#[$doc:meta])+ $field:ident: $kind:ty, )+
        }
    )+) => {$(
        $(#[$about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $state {
            $( $(#[$doc])+ pub $field: $kind, )+
        }

        $(#[$about])+
        ///
        /// The first line of an `id` says that it is there, and later ones what has changed. A field that was never
        /// told is empty.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
        pub struct $line {
            /// Time, ns: the state is that after everything of this time.
            pub t: u64,
            /// Its number, unique among lines of this kind.
            pub id: u64,
            /// True if it is there no more.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub gone: bool,
            $(
                $(#[$doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$kind>,
            )+
        }

        impl $state {
            /// The line about what differs from the state `before`.
            pub(super) fn line(&self, (t, id): (u64, u64), before: &Self) -> $line {
                $line {
                    t,
                    id,
                    gone: false,
                    $( $field: (self.$field != before.$field).then(|| self.$field.clone()), )+
                }
            }
            /// The line that says that it is gone.
            pub(super) fn gone((t, id): (u64, u64)) -> $line {
                $line { t, id, gone: true, ..$line::default() }
            }
        }
    )+};
}

states! {
    /// A switched or permanent connection, as its caller sees it.
    CallState, CallLine {
        /// The caller.
        from: String,
        /// The called end system; null if the lab does not know it. Of a point-to-multipoint call the first one.
        to: Option<String>,
        /// ATM address of the called party, if the lab does not know it.
        called: Option<String>,
        /// Purpose: the B-LLI, or else the user; `pvc` for a permanent connection.
        what: String,
        /// User of the call at the caller.
        user: Option<String>,
        /// `waiting`, `calling`, `connected` or `releasing`.
        state: String,
        /// Labels at the caller and at the called end system, `vpi.vci`, as far as they are known.
        vc: [Option<String>; 2],
        /// Traffic as in qos(7), seen from the caller.
        qos: String,
        /// Links that cells of the caller take now, in order from the caller; of a point-to-multipoint call all links
        /// of the tree, depth first.
        via: Vec<String>,
        /// Label on each of these links.
        labels: Vec<String>,
        /// True for a point-to-multipoint call.
        multipoint: bool,
        /// End systems that cells of a point-to-multipoint call reach now.
        leaves: Vec<String>,
        /// Parties of a point-to-multipoint call, as its root knows them.
        parties: u64,
    }

    /// A LANE client, a member of a Classical IP subnet, or an NHRP client.
    MemberState, MemberLine {
        /// The node.
        node: String,
        /// Its network.
        network: Option<String>,
        /// `lane`, `clip`, `line` or `nhrp`.
        by: String,
        /// `joined`, or how far joining is, in the words of `inspect`.
        state: String,
        /// Number that the LES gave to a LANE client.
        lecid: Option<u16>,
    }

    /// A shortcut of MPOA or NHRP, where it begins.
    ShortcutState, ShortcutLine {
        /// The node where it begins.
        from: String,
        /// The node where it ends, once it is known.
        to: Option<String>,
        /// Its destination: an IP address or network.
        dest: String,
        /// `mpoa` or `nhrp`.
        by: String,
        /// `resolving`; `resolved`, without a connection; `open`; `refreshing`, which is open and asked for again; or
        /// `hold-down` after a refusal.
        state: String,
        /// Label of its connection where it begins.
        vc: Option<String>,
        /// The call that carries it.
        call: Option<u64>,
        /// Traffic of a flow with a QoS entry.
        traffic: Option<String>,
    }

    /// A node, a service or a link that does not work.
    FaultState, FaultLine {
        /// `link`, `node` or `service`.
        what: String,
        /// Name of the link or node.
        name: String,
        /// Kind of the service.
        service: Option<String>,
        /// One sentence.
        text: String,
    }
}

/// Purpose of a permanent connection.
pub(crate) const PVC: &str = "pvc";

/// The JSON Schema of a line (draft 2020-12).
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Line).to_value();
    schema["$id"] = format!("urn:aerostat:{SCHEMA}").into();
    schema["title"] = "A line of aerostat.events.v1".into();
    schema
}
