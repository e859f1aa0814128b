//! `aerostat pvc`: permanent connections of a running lab.

use super::inspect::described;
use super::inspect::understood;
use crate::args::{PvcArgs, PvcCommand};
use crate::client;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::output::{self, Rows};
use aerostat_live::control::Request;
use aerostat_node::inspect::StateKind;
use aerostat_wire::Qos;
use aerostat_wire::qos_text::repeated;

/// Sets up, removes or lists connections; the connections concerned are shown in one form.
pub(crate) fn run(args: &PvcArgs) -> Outcome {
    let (which, output, request) = match &args.command {
        PvcCommand::Add(add) => {
            if let Err(error) = Qos::from_request(&add.qos) {
                let text = format!("--qos {}: {error}", add.qos);
                return Err(Failure::usage(text).hint("for example --qos cbr:max_pcr=2000"));
            }
            if let Some(odd) = repeated(&add.qos) {
                exit::say(format_args!("warning: --qos {}: {odd}", add.qos));
            }
            let request = Request::PvcAdd {
                node: add.switch.clone(),
                ends: [add.a.clone(), add.b.clone()],
                qos: add.qos.clone(),
                path: add.vp,
                police: add.police.map(Into::into),
            };
            (&add.which, &add.output, request)
        }
        PvcCommand::Del(del) => {
            let (node, end) = (del.switch.clone(), del.end.clone());
            (&del.which, &del.output, Request::PvcDel { node, end })
        }
        PvcCommand::Show(show) => {
            let (node, what) = (show.switch.clone(), StateKind::Pvc);
            (&show.which, &show.output, Request::Inspect { node, what })
        }
    };
    let mut client = client::connect(which)?;
    let tables: Vec<Rows> = understood(client::ask(&mut client, &request)?)?;
    let tables = tables.into_iter();
    let tables: Vec<Rows> = tables.map(|rows| described(StateKind::Pvc, rows)).collect();
    output::write(output.form(), "aerostat.pvc.v1", &tables)?;
    Ok(Exit::Ok)
}
