//! `aerostat validate`: checks a lab file.

use crate::args::ValidateArgs;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::labs::{self, find::find};
use crate::output::{self, Form, Format, Rows};
use aerostat_lab::diag::Severity;
use aerostat_lab::model::SubnetKind;
use aerostat_lab::{Diagnostics, Lab, ReadError};
use aerostat_live::charset;
use serde_json::Value;
use std::io::Write as _;

/// Checks the files, or prints the schema.
pub(crate) fn run(args: &ValidateArgs) -> Outcome {
    if args.schema {
        writeln!(std::io::stdout().lock(), "{}", aerostat_lab::schema_text())?;
        return Ok(Exit::Ok);
    }
    let people = args.output == Format::Table;
    let (mut tables, mut warnings, mut bad) = (Vec::new(), 0, Vec::new());
    for given in &args.labs {
        let path = match find(given) {
            Ok(path) => path,
            // The other files are still checked.
            Err(failure) => {
                bad.push(failure);
                continue;
            }
        };
        let (findings, lab) = match labs::load(&path, &args.set) {
            Ok(checked) => {
                let checked = checked.on_machine(aerostat_live::has_group);
                (checked.warnings, Some(checked.lab))
            }
            Err(ReadError::Bad(findings)) => (findings, None),
            Err(ReadError::Io(error)) => {
                bad.push(labs::unreadable(&path, &error));
                continue;
            }
        };
        if people {
            labs::tell(&findings);
            if let Some(lab) = &lab {
                writeln!(charset::stdout(), "{}", describe(lab))?;
            }
        }
        tables.push(table(&findings));
        match lab {
            Some(_) => warnings += findings.count(Severity::Warning),
            None => bad.push(Failure::usage(labs::summary(&path, &findings))),
        }
    }
    if !people {
        output::write(
            Form::new(args.output, false),
            "aerostat.validate.v1",
            &tables,
        )?;
    }
    let Some(last) = bad.pop() else {
        return Ok(Exit::Ok.with_warnings(warnings > 0));
    };
    bad.iter().for_each(exit::complain);
    Err(last)
}

/// `campus: 3 switches, 5 ELANs, 2 routers, 4 hosts, 4 flows`.
fn describe(lab: &Lab) -> String {
    let of = |kind| lab.elans.iter().filter(|elan| elan.kind() == kind).count();
    let counts = [
        (lab.switches().count(), "switch", "switches"),
        (of(SubnetKind::Lane), "ELAN", "ELANs"),
        (
            of(SubnetKind::ClassicalIp),
            "Classical IP subnet",
            "Classical IP subnets",
        ),
        (of(SubnetKind::Line), "line", "lines"),
        (lab.routers().count(), "router", "routers"),
        (lab.hosts().count(), "host", "hosts"),
        (lab.traffic.len(), "flow", "flows"),
        (lab.faults.len(), "fault", "faults"),
    ];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    format!("{}: {}", lab.name, parts.join(", "))
}

fn table(findings: &Diagnostics) -> Rows {
    let mut rows = Rows::new(&["severity", "source", "line", "column", "message", "hint"]);
    for finding in findings.iter() {
        let at = findings.locate(finding.at);
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        rows.push(vec![
            severity.into(),
            at.source.into(),
            at.line.into(),
            at.column.into(),
            finding.message.clone().into(),
            finding.hint.clone().map_or(Value::Null, Value::from),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn summary(name: &str) -> String {
        let labs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs"));
        let file = labs.join(format!("{name}.atm.yml"));
        labs::load(&file, &[]).map_or_else(|_| panic!("{name}"), |checked| describe(&checked.lab))
    }

    #[test]
    fn subnets_of_classical_ip_are_not_counted_as_elans() {
        let summary = summary("clip");
        assert!(
            summary.contains(" 1 ELAN, ") && summary.contains(" Classical IP subnets,"),
            "{summary}"
        );
    }
}
