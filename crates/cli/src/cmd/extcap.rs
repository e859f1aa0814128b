//! `aerostat extcap`: links of running labs as interfaces of Wireshark.
//!
//! Wireshark starts each program of its extcap folder with `--extcap-interfaces` and shows what it prints. A capture is
//! that of `aerostat capture`, into the named pipe that Wireshark reads. Lines are sentences with values in braces; a
//! name must not have a brace. Source: doc/extcap_example.py and extcap(4) of Wireshark.

use crate::args::{CaptureArgs, ExtcapArgs, RunningLab};
use crate::cmd::capture;
use crate::exit::{Exit, Failure, Outcome};
use crate::names;
use crate::version::VERSION;
use std::io::{self, Write as _};

/// Name in front of all interfaces.
const PREFIX: &str = "aerostat";
/// The number of LINKTYPE_SUNATM. A capture of single cells says by itself that it has another type.
const SUNATM: u32 = 123;

/// An interface: one link, or all links of a lab.
struct Interface {
    lab: String,
    link: Option<String>,
}

impl Interface {
    fn name(&self) -> String {
        match &self.link {
            Some(link) => format!("{PREFIX}.{}.{link}", self.lab),
            None => format!("{PREFIX}.{}", self.lab),
        }
    }

    fn title(&self) -> String {
        match &self.link {
            Some(link) => format!("ATM link {link} of lab {}", self.lab),
            None => format!("All ATM links of lab {}", self.lab),
        }
    }
}

/// The interfaces of all running labs of this user.
fn interfaces() -> Vec<Interface> {
    let mut all = Vec::new();
    for (lab, picture) in names::running_pictures() {
        let links = picture.cables.into_iter().map(|cable| Some(cable.name));
        let each = std::iter::once(None).chain(links);
        all.extend(each.map(|link| Interface {
            lab: lab.clone(),
            link,
        }));
    }
    all
}

/// Options of an interface: each with its title and its explanation.
const OPTIONS: [(&str, &str, &str); 2] = [
    (
        "--both-ends",
        "Record both ends",
        "A packet that arrives is there twice",
    ),
    (
        "--cells",
        "Record single cells",
        "Cells of OAM too, instead of whole PDUs",
    ),
];

/// Answers Wireshark's question.
pub(crate) fn run(args: &ExtcapArgs) -> Outcome {
    let mut out = io::stdout().lock();
    if args.extcap_interfaces {
        writeln!(
            out,
            "extcap {{version={VERSION}}}{{display=Aerostat: links of running labs}}"
        )?;
        for interface in interfaces() {
            let (name, title) = (plain(&interface.name()), plain(&interface.title()));
            writeln!(out, "interface {{value={name}}}{{display={title}}}")?;
        }
    } else if args.extcap_dlts {
        writeln!(
            out,
            "dlt {{number={SUNATM}}}{{name=SUNATM}}{{display=AAL5 PDUs with VPI and VCI}}"
        )?;
    } else if args.extcap_config {
        for (number, (option, title, more)) in OPTIONS.iter().enumerate() {
            writeln!(
                out,
                "arg {{number={number}}}{{call={option}}}{{display={title}}}{{tooltip={more}}}\
                 {{type=boolflag}}{{default=false}}"
            )?;
        }
    } else {
        drop(out);
        return capture(args);
    }
    Ok(Exit::Ok)
}

/// Records an interface into Wireshark's pipe.
fn capture(args: &ExtcapArgs) -> Outcome {
    let (true, Some(fifo)) = (args.capture, &args.fifo) else {
        let hint = "--extcap-interfaces, --extcap-dlts, --extcap-config or --capture; 'aerostat capture' is for people";
        return Err(Failure::usage("extcap needs a question of Wireshark").hint(hint));
    };
    let filter = args.extcap_capture_filter.as_deref().unwrap_or_default();
    if !filter.is_empty() {
        return Err(Failure::usage("links of a lab have no capture filters")
            .hint("leave the capture filter empty, and use a display filter"));
    }
    let wanted = args.extcap_interface.as_deref().unwrap_or_default();
    let mut all = interfaces().into_iter();
    let Some(interface) = all.find(|interface| plain(&interface.name()) == wanted) else {
        let text = format!("no running lab has the interface '{wanted}'");
        return Err(Failure::new(Exit::NotRunning, text)
            .hint("the lab may have ended: refresh the list of interfaces"));
    };
    capture::quietly(CaptureArgs {
        links: interface.link.into_iter().collect(),
        write: fifo.clone(),
        both_ends: args.both_ends,
        cells: args.cells,
        which: RunningLab {
            lab: Some(interface.lab),
        },
    })
}

/// A text without what would end a value, and without control characters.
fn plain(text: &str) -> String {
    let plain = aerostat_lab::printable::line(text);
    plain.replace(['{', '}'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_titles_fit_between_braces() {
        let interface = |link: Option<&str>| Interface {
            lab: "two-subnets".into(),
            link: link.map(Into::into),
        };
        assert_eq!(interface(None).name(), "aerostat.two-subnets");
        assert_eq!(
            interface(Some("urku-s1")).name(),
            "aerostat.two-subnets.urku-s1"
        );
        let hostile = interface(Some("a}{value=b\nc"));
        assert_eq!(plain(&hostile.title()).find(['{', '}', '\n']), None);
    }
}
