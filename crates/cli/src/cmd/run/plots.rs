//! Drawings of one run: `run --plot`.

use super::sweep::plots::write_drawing;
use crate::args::RunArgs;
use crate::exit::{self, Failure};
use crate::plot::{Axis, Figure, Point, Scale, Series as Line, Stroke};
use aerostat_lab::Lab;
use aerostat_lab::report::RunReport;
use aerostat_node::ip::flow_stats::{Delta, FlowReport, Series};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Refuses a name that is no drawing, before the run.
pub(super) fn check(path: &Path, several: bool) -> Result<(), Failure> {
    let extension = path.extension().unwrap_or_default();
    if extension == "svg" && several {
        let text = "several runs do not fit one drawing of a run";
        return Err(Failure::usage(text).hint(
            "--plot DIR has a directory for each run; 'aerostat sweep --plot' draws over the runs",
        ));
    }
    if extension != "svg" && !extension.is_empty() && !path.is_dir() {
        let text = format!("{}: a drawing is a file .svg", path.display());
        return Err(Failure::usage(text).hint("--plot FILE.svg, or a directory without a dot"));
    }
    Ok(())
}

/// Writes all drawings that the run has into a directory, or the first of them into a file; nothing if they are not
/// wanted.
pub(super) fn draw(args: &RunArgs, lab: &Lab, report: &RunReport) -> Result<(), Failure> {
    let (Some(path), quiet) = (&args.plot, args.quiet) else {
        return Ok(());
    };
    let kinds = [
        windows(lab, report),
        levels(lab, report),
        deltas(lab, report),
        delays(lab, report),
    ];
    let single = path.extension().is_some_and(|extension| extension == "svg");
    let mut written: BTreeSet<PathBuf> = BTreeSet::new();
    for (name, figure) in kinds.into_iter().flatten() {
        for part in figure.parts() {
            if single && !written.is_empty() {
                let text = "the run has more drawings than one; --plot DIR has them all";
                exit::say(format_args!("{text}"));
                return Ok(());
            }
            // Parts of one drawing, and flows whose names make the same name of a file, have numbers.
            let numbers = (1..).map(|number| match number {
                1 => format!("{name}.svg"),
                more => format!("{name}-{more}.svg"),
            });
            let mut files = numbers.map(|file| match single {
                true => path.to_owned(),
                false => path.join(file),
            });
            let free = files.find(|file| !written.contains(file));
            let file = free.unwrap_or_else(|| path.to_owned());
            write_drawing(&file, &part)?;
            if !quiet {
                exit::say(format_args!("{} is drawn", file.display()));
            }
            written.insert(file);
        }
    }
    if written.is_empty() {
        exit::say("nothing is drawn: no packet of a flow was delivered");
    }
    Ok(())
}

/// An axis of amounts.
const FROM_ZERO: Scale = Scale::Linear { zero: true };

/// A drawing and its name.
type Named = (String, Figure);

fn figure(
    lab: &Lab,
    title: &str,
    x: Axis,
    (y, scale): (&str, Scale),
    series: Vec<Line>,
) -> Option<Figure> {
    let series: Vec<Line> = series
        .into_iter()
        .filter(|one| !one.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| Figure {
        title: title.into(),
        note: format!("{}, seed {}", lab.name, lab.seed),
        x,
        y: Axis {
            label: y.into(),
            scale,
        },
        sideways: false,
        series,
        words: Vec::new(),
    })
}

fn time() -> Axis {
    Axis {
        label: "time (s)".into(),
        scale: Scale::Linear { zero: false },
    }
}

/// The distribution of the delays of each flow and phase.
fn delays(lab: &Lab, report: &RunReport) -> Vec<Named> {
    let flows = report.flows.iter().flat_map(|flow| {
        let many = flow.paths.len() > 1;
        flow.paths.iter().map(move |path| {
            let phase = lab.phase(flow.flow.0, path.path);
            let name = if many {
                format!("{}, {phase}", flow.name)
            } else {
                flow.name.clone()
            };
            let first = (path.delay.count > 0).then_some((path.delay.min_us, 0.0));
            let steps = first.iter().chain(&path.delay_shares);
            Line {
                name,
                form: Stroke::Steps,
                points: steps.map(|(us, share)| Point::new(*us, *share)).collect(),
                sign: None,
            }
        })
    });
    let series: Vec<Line> = flows.collect();
    let values: Vec<f64> = series
        .iter()
        .flat_map(|one| &one.points)
        .map(|point| point.x)
        .collect();
    let x = Axis {
        label: "one-way delay (µs)".into(),
        scale: Scale::fitting(&values),
    };
    let title = "Distribution of the delays of packets";
    let figure = figure(lab, title, x, ("share of packets", Scale::Share), series);
    figure
        .map(|figure| ("delays".to_owned(), figure))
        .into_iter()
        .collect()
}

/// Window and round trip of ATP over time.
fn windows(lab: &Lab, report: &RunReport) -> Vec<Named> {
    let name = |step: &aerostat_lab::dialogues::WindowStep| {
        format!("{}/{} {}", step.at.0, step.at.1, step.connection)
    };
    let mut window: Vec<Line> = Vec::new();
    let mut round_trip: Vec<Line> = Vec::new();
    for step in &report.windows {
        let name = name(step);
        let known = window.iter().position(|one| one.name == name);
        let at = known.unwrap_or_else(|| {
            for all in [&mut window, &mut round_trip] {
                all.push(Line {
                    name: name.clone(),
                    form: Stroke::Steps,
                    points: Vec::new(),
                    sign: None,
                });
            }
            window.len() - 1
        });
        let time = step.step.at.as_nanos() as f64 / 1e9;
        window[at]
            .points
            .push(Point::new(time, f64::from(step.step.window) / 8.0));
        let ms = step.step.round_trip.as_secs_f64() * 1e3;
        round_trip[at].points.push(Point::new(time, ms));
    }
    let window = figure(
        lab,
        "Window of ATP",
        time(),
        ("window (packets)", FROM_ZERO),
        window,
    );
    let trips = figure(
        lab,
        "Round trip of ATP",
        time(),
        ("round trip (ms)", FROM_ZERO),
        round_trip,
    );
    let named = [("atp-window", window), ("atp-round-trip", trips)];
    named
        .into_iter()
        .filter_map(|(name, figure)| Some((name.to_owned(), figure?)))
        .collect()
}

/// A value of a delta.
type OfDelta = fn(&Delta) -> f64;
/// Most packets of a drawing of delta times.
const PACKETS: usize = 2000;

/// The time between two packets at both ends, of each flow whose packets are kept one by one.
fn deltas(lab: &Lab, report: &RunReport) -> Vec<Named> {
    let of_flow = |flow: &FlowReport| {
        let deltas: Vec<Delta> = flow.series.iter().flat_map(Series::deltas).collect();
        let ends: [(&str, OfDelta); 2] = [
            ("received", |delta| delta.received_us),
            ("sent", |delta| delta.sent_us),
        ];
        let line = |(name, of): (&str, OfDelta)| Line {
            name: name.to_owned(),
            form: Stroke::Joined,
            points: deltas
                .iter()
                .take(PACKETS)
                .map(|delta| Point::new(delta.number as f64, of(delta) / 1e3))
                .collect(),
            sign: None,
        };
        let title = match deltas.len() > PACKETS {
            true => format!("Delta times of {}, the first {PACKETS} packets", flow.name),
            false => format!("Delta times of {}", flow.name),
        };
        let x = Axis {
            label: "packet".into(),
            scale: Scale::Linear { zero: false },
        };
        let y = ("time since the packet before (ms)", FROM_ZERO);
        let figure = figure(lab, &title, x, y, ends.map(line).into());
        figure.map(|figure| (format!("delta-{}", flow.name.replace('/', "_")), figure))
    };
    report.flows.iter().filter_map(of_flow).collect()
}

/// Levels of the buffers that ever held a cell.
fn levels(lab: &Lab, report: &RunReport) -> Vec<Named> {
    const BUFFERS: [&str; 2] = ["guaranteed", "best effort"];
    let mut series: Vec<Line> = Vec::new();
    for sample in &report.occupancy {
        let port = &sample.port;
        let (node, link) = (&lab.node(port.node).name, &lab.link(port.link).name);
        for (cells, buffer) in sample.cells.iter().zip(BUFFERS) {
            let name = format!("{node}, {link}, {buffer}");
            let point = Point::new(sample.at.as_nanos() as f64 / 1e9, f64::from(*cells));
            match series.iter_mut().find(|one| one.name == name) {
                Some(one) => one.points.push(point),
                None => series.push(Line {
                    name,
                    form: Stroke::Steps,
                    points: vec![point],
                    sign: None,
                }),
            }
        }
    }
    series.retain(|one| one.points.iter().any(|point| point.y > 0.0));
    let figure = figure(
        lab,
        "Levels of buffers",
        time(),
        ("cells", FROM_ZERO),
        series,
    );
    figure
        .map(|figure| ("levels".to_owned(), figure))
        .into_iter()
        .collect()
}
