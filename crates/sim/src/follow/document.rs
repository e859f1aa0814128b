//! The way of a packet as a document, with the names of the lab. [`schema`] is its published form.

use super::{Behind, Fate, Followed, Stage, Verdict, What};
use aerostat_lab::Lab;
use aerostat_lab::plant::{LineId, NodeId};
use aerostat_wire::Vc;
use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of the document.
pub const SCHEMA: &str = "aerostat.follow.v1";

/// The way of a packet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Document {
    /// Name and version of this format: `aerostat.follow.v1`.
    pub schema: String,
    /// Name of the lab.
    pub lab: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the flow.
    pub flow: String,
    /// Number of the packet in the order of sending, from 1. Packets that the sender's stack refused do not count.
    pub packet: u64,
    /// Node of the sender.
    pub from: String,
    /// Node of the receiver.
    pub to: String,
    /// Path by which it left: `routed`, `shortcut`, or `direct` inside one subnet; missing if it never left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Time at which its program made it, nanoseconds since the start of the run; missing for segments of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_ns: Option<u64>,
    /// Time at which it left the stack of the sender, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// Fate of the packet.
    pub fate: FateWord,
    /// Time at which it reached the stack of the receiver, or was lost, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Its delay as the meters of the flow measure it, nanoseconds: the sum of the stages that are `counted`. Missing
    /// if it did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// The same in microseconds, as in the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<f64>,
    /// Place of the loss, as in column `lost_by` of the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// True if another packet with the same headers was under way, as after a restart of the sender: the stages may be
    /// those of the other one.
    pub ambiguous: bool,
    /// Stages of its way, in the order of time.
    pub stages: Vec<StageRow>,
}

/// Fates of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FateWord {
    /// It reached the stack of the receiver.
    Delivered,
    /// It was lost.
    Lost,
    /// It was on its way when the run ended.
    UnderWay,
}

/// A part of the way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageRow {
    /// The node; on a link, the one that sends.
    pub node: String,
    /// Its beginning, nanoseconds since the start of the run.
    pub at_ns: u64,
    /// Its time, nanoseconds.
    pub takes_ns: u64,
    /// True if its time is a part of the delay.
    pub counted: bool,
    /// Kind of the stage.
    #[serde(flatten)]
    pub what: WhatRow,
}

/// Kinds of stages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum WhatRow {
    /// It waits in the stack of the sender, for ARP or for its turn. This is before the delay begins.
    Stack,
    /// It leaves the stack.
    Leaves {
        /// `routed`, `shortcut` or `direct`.
        path: String,
        /// State of the destination at the sender, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The sender waits for an address or a connection, or its bridge has the packet.
    Sender,
    /// A router has it.
    Router,
    /// A LANE server (its BUS), or another end system on the way, has it.
    Relay,
    /// The receiver has it, for example its bridge and its Ethernet.
    Receiver,
    /// The CPU of an end system handles it.
    Cpu {
        /// True if it is being sent, false if it was received.
        sends: bool,
    },
    /// The receive path of an adapter handles it.
    Intake,
    /// Its last cell waits at a port.
    Queue {
        /// The link behind the port.
        link: String,
        /// VPI.VCI on this link.
        vc: String,
        /// Cells of its PDU.
        cells: u16,
        /// User of the connection, at the first port.
        #[serde(skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Cells of its own PDU that left before it while it waited.
        own: BehindRow,
        /// Other cells that left while it waited, by label; those that took longest first.
        others: Vec<BehindRow>,
        /// Time in which the link carried nothing, nanoseconds: a shaper, a reserved rate, an empty slot.
        idle_ns: u64,
        /// False if there were more cells than a port remembers.
        complete: bool,
    },
    /// Its last cell is being sent.
    Transmission {
        /// The link.
        link: String,
        /// VPI.VCI on it.
        vc: String,
    },
    /// Its last cell travels.
    Propagation {
        /// The link.
        link: String,
        /// Node at its end.
        to: String,
    },
    /// A switch gives its last cell another label. It takes no time.
    Switch {
        /// Port at which it came in.
        in_port: u16,
        /// Label at which it came in.
        in_vc: String,
        /// Port at which it goes out.
        out_port: u16,
        /// Label at which it goes out.
        out_vc: String,
        /// Verdict of the policer; missing where nothing is policed.
        #[serde(skip_serializing_if = "Option::is_none")]
        policer: Option<VerdictWord>,
    },
    /// The adapter has all cells of the PDU. It takes no time.
    Reassembly {
        /// Cells of the PDU.
        cells: u16,
        /// Its label.
        vc: String,
    },
    /// Nothing is known of it, because it was cut into fragments.
    Unseen,
    /// It is lost.
    Lost {
        /// The place, as in column `lost_by` of the results.
        place: String,
    },
}

/// Verdict of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// The cell conforms to the contract.
    Conforms,
    /// The cell was given CLP 1.
    Tagged,
}

/// Cells that left before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BehindRow {
    /// VPI.VCI; missing for those of the packet's own PDU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vc: Option<String>,
    /// Their number; one that was on the line already counts.
    pub cells: u64,
    /// Time that they took while the cell waited, nanoseconds.
    pub ns: u64,
}

/// The JSON Schema of the document (draft 2020-12).
#[must_use]
pub fn schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Document);
    schema.insert("$id".to_owned(), format!("urn:aerostat:{SCHEMA}").into());
    schema
}

impl Document {
    /// The document of a packet of `lab`.
    #[must_use]
    pub fn new(lab: &Lab, way: &Followed) -> Self {
        let (flow, number) = way.packet;
        let words = Words { lab, flow: flow.0 };
        let model = lab.traffic.get(flow.0);
        let end = |of: fn(&aerostat_lab::model::Flow) -> NodeId| {
            model.map_or_else(String::new, |model| words.node(of(model)))
        };
        let (fate, at) = match way.fate {
            Fate::Delivered { at, .. } => (FateWord::Delivered, Some(at)),
            Fate::Lost { at, .. } => (FateWord::Lost, Some(at)),
            Fate::UnderWay => (FateWord::UnderWay, None),
        };
        let lost = match &way.fate {
            Fate::Lost { place, .. } => Some(lab.place(place)),
            Fate::Delivered { .. } | Fate::UnderWay => None,
        };
        let delay = way.delay();
        Self {
            schema: SCHEMA.to_owned(),
            lab: lab.name.clone(),
            seed: lab.seed,
            flow: model.map_or_else(String::new, |model| model.name.clone()),
            packet: number + 1,
            from: end(|flow| flow.from),
            to: end(|flow| flow.to),
            path: way.path.map(|path| words.path(path)),
            offered_ns: way.offered.map(|at| at.as_nanos()),
            sent_ns: way.sent.map(|sent| sent.0.as_nanos()),
            fate,
            end_ns: at.map(|at| at.as_nanos()),
            delay_ns: delay.map(nanos),
            delay_us: delay.map(|delay| nanos(delay) as f64 / 1e3),
            lost,
            ambiguous: way.ambiguous,
            stages: way
                .stages
                .iter()
                .map(|stage| words.stage(stage, way.is_counted(stage)))
                .collect(),
        }
    }
}

/// Nanoseconds of a time, which is far below 584 years.
fn nanos(time: aerostat_proto::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Names of a lab.
struct Words<'a> {
    lab: &'a Lab,
    flow: usize,
}

impl Words<'_> {
    fn node(&self, node: NodeId) -> String {
        let node = self.lab.nodes.get(node.0);
        node.map_or_else(String::new, |node| node.name.clone())
    }
    fn link(&self, line: LineId) -> String {
        let link = self.lab.links.get(line.link().0);
        link.map_or_else(String::new, |link| link.name.clone())
    }
    fn path(&self, path: aerostat_node::ip::meter::Path) -> String {
        self.lab.phase(self.flow, path).to_owned()
    }

    fn stage(&self, stage: &Stage, counted: bool) -> StageRow {
        StageRow {
            node: self.node(stage.node),
            at_ns: stage.from.as_nanos(),
            takes_ns: nanos(stage.time()),
            counted,
            what: self.what(&stage.what),
        }
    }

    fn propagation(&self, line: LineId) -> WhatRow {
        let link = self.lab.links.get(line.link().0);
        let to = link.map(|link| link.ends[1 - line.side()].node);
        WhatRow::Propagation {
            link: self.link(line),
            to: to.map_or_else(String::new, |to| self.node(to)),
        }
    }

    fn what(&self, what: &What) -> WhatRow {
        match what {
            What::Stack => WhatRow::Stack,
            What::Leaves { path, why } => WhatRow::Leaves {
                path: self.path(*path),
                why: why.clone(),
            },
            What::Sender => WhatRow::Sender,
            What::Router => WhatRow::Router,
            What::Relay => WhatRow::Relay,
            What::Receiver => WhatRow::Receiver,
            What::Cpu { sends } => WhatRow::Cpu { sends: *sends },
            What::Intake => WhatRow::Intake,
            What::Queue {
                line,
                vc,
                cells,
                user,
                wait,
            } => WhatRow::Queue {
                link: self.link(*line),
                vc: vc.to_string(),
                cells: *cells,
                user: user.clone(),
                own: behind(&wait.own),
                others: wait.others.iter().map(behind).collect(),
                idle_ns: nanos(wait.idle),
                complete: wait.complete,
            },
            What::Transmission { line, vc } => WhatRow::Transmission {
                link: self.link(*line),
                vc: vc.to_string(),
            },
            What::Propagation { line } => self.propagation(*line),
            What::Switch {
                came,
                goes,
                policed,
            } => WhatRow::Switch {
                in_port: came.0,
                in_vc: came.1.to_string(),
                out_port: goes.0,
                out_vc: goes.1.to_string(),
                policer: policed.map(|verdict| match verdict {
                    Verdict::Conforms => VerdictWord::Conforms,
                    Verdict::Tagged => VerdictWord::Tagged,
                }),
            },
            What::Reassembly { cells, vc } => WhatRow::Reassembly {
                cells: *cells,
                vc: vc.to_string(),
            },
            What::Unseen => WhatRow::Unseen,
            What::Lost { place } => WhatRow::Lost {
                place: self.lab.place(place),
            },
        }
    }
}

fn behind(behind: &Behind) -> BehindRow {
    BehindRow {
        vc: behind.vc.map(|vc: Vc| vc.to_string()),
        cells: behind.cells,
        ns: nanos(behind.time),
    }
}
