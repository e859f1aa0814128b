//! `aerostat qos`: QoS entries of MPOA clients in a running lab.

use super::inspect::described;
use super::inspect::understood;
use crate::args::{QosArgs, QosCommand};
use crate::client;
use crate::exit::{Exit, Outcome};
use crate::output::{self, Rows};
use aerostat_live::control::Request;
use aerostat_node::inspect::StateKind;

/// Sets, removes or lists entries; afterwards the entries of the host are shown in one form.
pub(crate) fn run(args: &QosArgs) -> Outcome {
    let (which, output, request) = match &args.command {
        QosCommand::Add(add) => {
            let (node, entry) = (add.node.clone(), add.entry.join(" "));
            (&add.which, &add.output, Request::QosAdd { node, entry })
        }
        QosCommand::Del(del) => {
            let (node, filter) = (del.node.clone(), del.entry.join(" "));
            (&del.which, &del.output, Request::QosDel { node, filter })
        }
        QosCommand::Show(show) => {
            let (node, what) = (show.node.clone(), StateKind::Qos);
            (&show.which, &show.output, Request::Inspect { node, what })
        }
    };
    let mut client = client::connect(which)?;
    let tables: Vec<Rows> = understood(client::ask(&mut client, &request)?)?;
    let tables = tables.into_iter();
    let tables: Vec<Rows> = tables.map(|rows| described(StateKind::Qos, rows)).collect();
    output::write(output.form(), "aerostat.qos.v1", &tables)?;
    Ok(Exit::Ok)
}
