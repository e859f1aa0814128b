//! `aerostat link`: shows the links of a running lab, and changes them.

use super::inspect::understood;
use crate::args::{LinkArgs, LinkCommand};
use crate::client;
use crate::exit::{Exit, Outcome};
use crate::output::{self, Rows};
use aerostat_live::control::{LinkRequest, Request};

/// Sends the request, and shows the links concerned.
pub(crate) fn run(args: &LinkArgs) -> Outcome {
    let (which, output, request) = match &args.command {
        LinkCommand::Show(of) => {
            let links = of.links.clone();
            (&of.which, &of.output, LinkRequest::Show { links })
        }
        LinkCommand::Set(of) => {
            let (link, values) = (of.link.clone(), of.values.clone());
            let request = LinkRequest::Set {
                link,
                values,
                retrain: None,
            };
            (&of.which, &of.output, request)
        }
        LinkCommand::Retrain(of) => {
            let (link, values) = (of.link.clone(), of.values.clone());
            let request = LinkRequest::Set {
                link,
                values,
                retrain: Some(of.duration.clone()),
            };
            (&of.which, &of.output, request)
        }
        LinkCommand::Reset(of) => {
            let link = of.link.clone();
            (&of.which, &of.output, LinkRequest::Reset { link })
        }
    };
    let mut client = client::connect(which)?;
    let tables: Vec<Rows> = understood(client::ask(&mut client, &Request::Link(request))?)?;
    output::write(output.form(), "aerostat.link.v1", &tables)?;
    Ok(Exit::Ok)
}
