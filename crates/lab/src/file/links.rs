//! Links of a lab file: between switches, and out of the lab.

use super::leaves::{LinkRate, Name, PoliceText, Probability, Time};
use super::{FramesFile, OutsideOptions, PathId, QueuesFile, TunnelFile};
use crate::diag::Diagnostics;
use crate::field::{At, FromTree, Table, Ways, section};
use crate::tree::{Tree, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// An entry of `links:`.
#[derive(Clone, Debug)]
pub(crate) enum LinkFile {
    /// `[a, b, { options }]`.
    Trunk(Box<TrunkFile>),
    /// `[node, { atmtcp: ... }]`, or another way out.
    Outside(Box<OutsideFile>),
}

section! {
    /// How a link behaves. The first six keys take one value for both directions, or { up: ..., down: ... }: up is from
    /// an end system to its switch; between two switches, or two end systems, to the one that is named first.
    LinkOptions {
        /// Unique name; default: the two nodes joined by '-'. Only between switches.
        name: Option<At<Name>>;
        /// Rate.
        rate: Ways<LinkRate> = "oc3";
        /// It is an Ethernet whose frames carry cells, instead of `rate`.
        ethernet: Option<FramesFile>;
        /// Propagation delay, with that of an interleaver. A kilometre of fibre takes 5us.
        delay: Ways<Time> = "5us", super::DELAY;
        /// Probability that a cell is lost.
        loss: Ways<Probability> = 0;
        /// Probability that a bit is inverted.
        bit_errors: Ways<Probability> = 0;
        /// Probability that a block is lost, with all cells that begin in it, as where a burst of noise hits an
        /// interleaved DSL line.
        block_errors: Ways<Probability> = 0;
        /// Length of a block.
        block: Ways<Time> = "16ms", super::BLOCK;
        /// Its switches hold cells that come in here to their contracts: true, all or false; default: as the switch
        /// says for end systems, and false between switches.
        police: Option<At<PoliceText>>;
        /// Tolerance of policers for contracts without one of their own; default 250us.
        cdvt: Option<At<Time>>;
        /// Queues of its switches in front of it; default: as these say.
        queues: Option<QueuesFile>;
        /// Shaped paths by VPI, for permanent connections.
        tunnels: Option<Table<PathId, TunnelFile>>;
    }
}

/// A link between two switches, or between two end systems.
#[derive(Clone, Debug)]
pub(crate) struct TrunkFile {
    /// The two nodes; the first plays the network side.
    pub(crate) ends: [At<String>; 2],
    /// How the link behaves.
    pub(crate) options: LinkOptions,
}

/// A link out of the lab.
#[derive(Clone, Debug)]
pub(crate) struct OutsideFile {
    /// The switch, or the end system.
    pub(crate) on: At<String>,
    /// Where it leads.
    pub(crate) options: OutsideOptions,
}

impl FromTree for LinkFile {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let items = match &tree.value {
            Value::List(items) => &items[..],
            _ => &[],
        };
        let (a, b, options) = match items {
            [on, options] if matches!(options.value, Value::Map(_)) => {
                let on = FromTree::from_tree(on, d);
                let options = OutsideOptions::from_tree(options, d);
                return Some(Self::Outside(Box::new(OutsideFile {
                    on: on?,
                    options: options?,
                })));
            }
            [a, b] => (a, b, None),
            [a, b, options] => (a, b, Some(options)),
            _ => {
                d.error(tree.at, "a link is [a, b] or [a, b, { options }]")
                    .hint("for example: [ls1010, asx200, { rate: oc3, delay: 5us }]")
                    .rests_in(tree.at, ["."]);
                return None;
            }
        };
        let a = FromTree::from_tree(a, d);
        let b = FromTree::from_tree(b, d);
        let options = match options {
            Some(options) => LinkOptions::from_tree(options, d),
            None => LinkOptions::absent("", tree.at, d),
        };
        Some(Self::Trunk(Box::new(TrunkFile {
            ends: [a?, b?],
            options: options?,
        })))
    }
}

impl JsonSchema for LinkFile {
    fn schema_name() -> Cow<'static, str> {
        "Link".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let options = generator.subschema_for::<LinkOptions>();
        let outside = generator.subschema_for::<OutsideOptions>();
        json_schema!({
            "anyOf": [
                {
                    "description": "between two switches, or between two end systems",
                    "type": "array",
                    "prefixItems": [{ "type": "string" }, { "type": "string" }, options],
                    "minItems": 2,
                    "maxItems": 3
                },
                {
                    "description": "out of the lab",
                    "type": "array",
                    "prefixItems": [{ "type": "string" }, outside],
                    "minItems": 2,
                    "maxItems": 2
                }
            ]
        })
    }
}
