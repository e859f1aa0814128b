use super::*;
use aerostat_lab::model::Lab;
use aerostat_lab::picture::{Calls, Shortcut};

fn labs() -> Vec<Lab> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let read = |path| aerostat_lab::read(path, &[]).unwrap().lab;
    files.iter().map(|path| read(path)).collect()
}

fn placed(picture: &Picture) -> Layout {
    let sizes: Vec<_> = picture.machines.iter().map(|m| size(picture, m)).collect();
    layout::place(picture, &sizes, &lines(picture).0)
}

/// All areas with text, with names for messages.
fn areas(picture: &Picture, layout: &Layout) -> Vec<(String, Area)> {
    let boxes = picture.machines.iter().zip(&layout.boxes);
    let boxes = boxes.map(|(machine, area)| (machine.name.clone(), *area));
    let labels = layout.labels.iter();
    let labels = labels.map(|(line, area)| (format!("label {line}"), *area));
    boxes.chain(labels).collect()
}

fn nothing_overlaps(picture: &Picture) {
    let layout = placed(picture);
    let areas = areas(picture, &layout);
    assert_eq!(layout.labels.len(), picture.cables.len());
    for (number, (name, area)) in areas.iter().enumerate() {
        assert!(area.width > 0.0, "{}: {name} has no place", picture.lab);
        for (other, there) in &areas[number + 1..] {
            let lab = &picture.lab;
            assert!(
                !area.meets(there, 0.0),
                "{lab}: {name} {area:?} meets {other} {there:?}"
            );
        }
    }
    for path in &layout.paths {
        assert!(
            path.starts_with("M "),
            "{}: a line without a path",
            picture.lab
        );
    }
}

#[test]
fn no_box_and_no_label_of_any_lab_lies_on_another() {
    let labs = labs();
    assert!(labs.len() >= 15);
    for lab in labs {
        nothing_overlaps(&Picture::of(&lab));
    }
}

/// Curves of a drawing: three points each. Rectangles of machines: left, top, width and height.
fn drawn(svg: &str) -> (Vec<[f64; 6]>, Vec<[f64; 4]>) {
    let number = |text: &str| text.parse::<f64>().unwrap();
    let quadratic = svg.lines().filter_map(|line| {
        let path = line.split(" d=\"").nth(1)?.split('"').next()?;
        let (_, rest) = path.split_once("M ")?;
        let (from, rest) = rest.split_once(" Q ")?;
        let words = from.split(' ').chain(rest.split([' ', ',']));
        let all: Vec<f64> = words.filter(|word| !word.is_empty()).map(number).collect();
        <[f64; 6]>::try_from(all).ok()
    });
    let boxes = svg.lines().filter(|line| line.contains(" rx=\""));
    let boxes = boxes.map(|line| {
        ["x", "y", "width", "height"].map(|name| {
            let value = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            number(value.split('"').next().unwrap())
        })
    });
    (quadratic.collect(), boxes.collect())
}

/// Number of boxes behind which a curve passes that does not begin or end there.
fn hidden(svg: &str) -> (usize, usize) {
    let (curves, boxes) = drawn(svg);
    let inside = |(x, y): (f64, f64), [left, top, width, height]: [f64; 4]| {
        left < x && x < left + width && top < y && y < top + height
    };
    let mut count = 0;
    for [ax, ay, mx, my, bx, by] in &curves {
        for area in &boxes {
            if inside((*ax, *ay), *area) || inside((*bx, *by), *area) {
                continue;
            }
            let on = |t: f64| {
                let mix = |a: f64, m: f64, b: f64| {
                    let (p, q) = (a + (m - a) * t, m + (b - m) * t);
                    p + (q - p) * t
                };
                (mix(*ax, *mx, *bx), mix(*ay, *my, *by))
            };
            let mut steps = (0..=1000).map(|step| f64::from(step) / 1000.0);
            count += usize::from(steps.any(|t| inside(on(t), *area)));
        }
    }
    (curves.len(), count)
}

#[test]
fn no_connection_of_any_lab_passes_behind_a_box() {
    let mut all = 0;
    for lab in labs() {
        let picture = Picture::of(&lab);
        let (curves, behind) = hidden(&draw(&picture).unwrap());
        assert_eq!(behind, 0, "{}: of {curves} curves", lab.name);
        all += curves;
    }
    assert!(all > 20, "{all}");
}

/// A lab of switches in a random network, with hosts and stations here and there.
fn random(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let switches = 1 + below(8);
    let mut text = String::from("switches: {");
    for switch in 0..switches {
        let _ = write!(text, " s{switch}: {{}},");
    }
    text.push_str(" }\nlinks:\n");
    for switch in 1..switches {
        let _ = writeln!(text, "  - [s{}, s{switch}]", below(switch));
    }
    for extra in 0..below(4) * u64::from(switches > 1) {
        let a = below(switches - 1);
        let b = a + 1 + below(switches - 1 - a);
        let _ = writeln!(text, "  - [s{a}, s{b}, {{ name: x{extra} }}]");
    }
    if switches == 1 {
        text = text.replace("links:\n", "");
    }
    text.push_str("lane: { on: s0, elans: { a: { subnet: 10.1.0.0/16 } } }\nhosts:\n");
    for host in 0..1 + below(30) {
        let on = below(switches);
        let bridge = match below(5) {
            0 => format!(", bridge: {{ t{host}: 10.1.2.{} }}", host + 1),
            _ => String::new(),
        };
        let ip = host + 1;
        let _ = writeln!(
            text,
            "  h{host}: {{ on: s{on}, elan: a, ip: 10.1.1.{ip}{bridge} }}"
        );
    }
    text
}

#[test]
fn no_box_and_no_label_of_random_networks_lies_on_another() {
    for seed in 1..=60 {
        let text = random(seed);
        let lab = match aerostat_lab::parse("random", &text, &[]) {
            Ok(checked) => checked.lab,
            Err(findings) => panic!("{findings}\n{text}"),
        };
        nothing_overlaps(&Picture::of(&lab));
    }
}

#[test]
fn more_than_anybody_could_read_is_refused_with_its_number() {
    let mut text = String::from(
        "switches: { s: {} }\nlane: { on: s, elans: { a: { subnet: 10.1.0.0/16 } } }\nhosts:\n",
    );
    for host in 0..400 {
        let (a, b) = (1 + host / 200, 1 + host % 200);
        let _ = writeln!(text, "  h{host}: {{ on: s, elan: a, ip: 10.1.{a}.{b} }}");
    }
    let lab = aerostat_lab::parse("large", &text, &[]).unwrap().lab;
    let said = draw(&Picture::of(&lab)).unwrap_err().to_string();
    // 400 hosts, the switch, the LANE server, and 401 links.
    assert_eq!(
        said,
        "a drawing has at most 600 machines and links, and these are 803"
    );
}

#[test]
fn what_a_running_lab_adds_is_drawn_and_its_labels_lie_on_nothing() {
    let campus = labs().into_iter().find(|lab| lab.name == "campus").unwrap();
    let mut picture = Picture::of(&campus);
    let at = |name: &str| {
        picture
            .machines
            .iter()
            .position(|m| m.name == name)
            .unwrap()
    };
    let (urku, basso, sello, lane) = (at("urku"), at("basso"), at("sello"), at("lane"));
    let shortcut = |ends, to: &str| Shortcut {
        ends,
        to: to.into(),
        vc: "0.39".into(),
    };
    picture.shortcuts = vec![
        shortcut([urku, basso], "10.4.0.10"),
        shortcut([basso, urku], "10.1.0.10"),
        shortcut([urku, sello], "10.3.0.10"),
    ];
    picture.calls = vec![Calls {
        ends: [urku, lane],
        what: "lane-control".into(),
        count: 4,
    }];
    picture.cables[0].down = true;
    picture.machines[urku].down = true;
    let layout = placed(&picture);
    let mut taken: Vec<Area> = areas(&picture, &layout)
        .into_iter()
        .map(|(_, a)| a)
        .collect();
    let before = taken.clone();
    let labels = connections(&picture, &layout, &mut taken, &mut Canvas::default());
    assert_eq!(labels.len(), 3);
    for (number, (label, area)) in labels.iter().enumerate() {
        let others = labels[number + 1..].iter().map(|(_, area)| area);
        let mut all = before.iter().chain(others);
        assert!(!all.any(|other| other.meets(area, 0.0)), "{label}");
    }
    let drawing = draw(&picture).unwrap();
    for needed in [
        "class=\"shortcut\"",
        "class=\"calls\"",
        "class=\"cut\"",
        ">shortcut to 10.3.0.10<",
        ">down<",
        "(cut)",
        "ELAN core 10.9.0.0/24",
    ] {
        assert!(drawing.contains(needed), "{needed}");
    }
}
