//! `mpoa:` in a lab file.

use super::{Atm, FlowDetect, Mac, Time, keys};
use crate::diag::Diagnostics;
use crate::field::{At, FromTree, scalar, section};
use crate::tree::{Tree, Value};
use aerostat_wire::mpoa::QosEntry;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

scalar!(
    /// A QoS entry.
    ShortcutQos(QosEntry), |text: &str| text.parse::<QosEntry>().map_err(|error| error.to_string()),
    { "type": "string", "description": "[SOURCE[:PORT]] DESTINATION[:PORT] [PROTOCOL] tx=PCR,SDU rx=tx", "examples": ["10.2.0.10 tx=80000,1600 rx=tx", "0.0.0.0:0 10.2.0.10:5004 udp tx=240,300 rx=tx"] }
);
scalar!(
    /// A protocol of flows: true is IPv6.
    FlowProtocol(bool), |text: &str| match text {
        "ipv4" => Ok(false),
        "ipv6" => Ok(true),
        _ => Err("expected ipv4 or ipv6".to_owned()),
    },
    { "enum": ["ipv4", "ipv6"] }
);
section! {
    /// An MPOA server that does not announce itself.
    StaticMpsFile {
        /// Its MAC address on the ELAN of the client.
        mac: At<Mac>;
        /// Its control address.
        address: At<Atm>;
    }
}
section! {
    /// Parameters of MPOA.
    MpoaParams (keys::mpoa()) {
        /// When it starts; default 0s.
        start: Option<At<Time>>;
        /// Client: what makes a flow (p1, p2).
        flow_detect: Option<At<FlowDetect>>;
        /// Client: packets that get shortcuts of their own with guaranteed traffic; see "QoS" in docs/lab-file.md.
        qos: Option<Vec<At<ShortcutQos>>>;
        /// Client: protocols of which flows are detected (p3); default [ipv4, ipv6].
        protocols: Option<Vec<At<FlowProtocol>>>;
        /// Client: MPOA servers that do not announce themselves.
        static_mps: Option<Vec<StaticMpsFile>>;
        /// Client: ask for tags on incoming shortcuts; default false.
        tag: Option<At<bool>>;
        /// Server: ask a client for a resolution with the first packet of its flow that is routed; default false.
        trigger: Option<At<bool>>;
    }
}
/// `mpoa:` is a switch or parameters.
#[derive(Clone, Debug)]
pub(crate) enum MpoaFile {
    /// true or false.
    Switch(At<bool>),
    /// Parameters.
    Params(Box<MpoaParams>),
}

impl FromTree for MpoaFile {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        match &tree.value {
            Value::Bool(on) => Some(Self::Switch(At {
                value: *on,
                at: tree.at,
            })),
            Value::Map(_) => Some(Self::Params(Box::new(MpoaParams::from_tree(tree, d)?))),
            other => {
                let found = match other {
                    Value::Text(text) => format!("'{text}'"),
                    other => other.kind().to_owned(),
                };
                let finding = d.error(
                    tree.at,
                    format!("mpoa is true, false or {{ parameters }}, not {found}"),
                );
                if let Value::Text(text) = other {
                    finding.suggest(text, ["true", "false"]);
                }
                None
            }
        }
    }
}

impl JsonSchema for MpoaFile {
    fn schema_name() -> Cow<'static, str> {
        "Mpoa".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let params = generator.subschema_for::<MpoaParams>();
        json_schema!({
            "description": "true, false, or parameters",
            "anyOf": [{ "type": "boolean" }, params]
        })
    }
}
