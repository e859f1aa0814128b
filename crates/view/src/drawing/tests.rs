use super::*;
use aerostat_lab::model::Lab;
use std::fmt::Write as _;

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

/// Curves of a drawing: three points each.
fn drawn(svg: &str) -> Vec<[f64; 6]> {
    let number = |text: &str| text.parse::<f64>().unwrap();
    let quadratic = svg.lines().filter_map(|line| {
        let path = line.split(" d=\"").nth(1)?.split('"').next()?;
        let (_, rest) = path.split_once("M ")?;
        let (from, rest) = rest.split_once(" Q ")?;
        let words = from.split(' ').chain(rest.split([' ', ',']));
        let all: Vec<f64> = words.filter(|word| !word.is_empty()).map(number).collect();
        <[f64; 6]>::try_from(all).ok()
    });
    quadratic.collect()
}

/// Number of boxes behind which a curve passes that does not begin or end there.
fn hidden(svg: &str, boxes: &[Area]) -> (usize, usize) {
    let curves = drawn(svg);
    let inside = |(x, y): (f64, f64), area: Area| {
        (x - area.x).abs() * 2.0 < area.width && (y - area.y).abs() * 2.0 < area.height
    };
    let mut count = 0;
    for [ax, ay, mx, my, bx, by] in &curves {
        for area in boxes {
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
        let boxes = placed(&picture).boxes;
        let (curves, behind) = hidden(&draw(&picture).unwrap(), &boxes);
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

/// A chain of switches with hosts at them.
fn chain(switches: usize, hosts: usize) -> Lab {
    let names: Vec<String> = (0..switches).map(|number| format!("s{number}")).collect();
    let mut text = format!("switches: {{ {}: {{}} }}\nlinks:\n", names.join(": {}, "));
    for pair in names.windows(2) {
        let _ = writeln!(text, "  - [{}, {}]", pair[0], pair[1]);
    }
    text.push_str("lane: { on: s0, elans: { a: { subnet: 10.0.0.0/8 } } }\nhosts:\n");
    for host in 0..hosts {
        let (a, b, on) = (1 + host / 200, 1 + host % 200, &names[host % switches]);
        let _ = writeln!(text, "  h{host}: {{ on: {on}, elan: a, ip: 10.1.{a}.{b} }}");
    }
    aerostat_lab::parse("large", &text.replace("links:\nlane", "lane"), &[])
        .unwrap()
        .lab
}

#[test]
fn large_networks_have_blocks_that_overlap_nowhere_and_are_no_strips() {
    for (switches, hosts) in [
        (1, 200),
        (1, 900),
        (5, 200),
        (12, 400),
        (50, 60),
        (50, 900),
        (300, 600),
    ] {
        let lab = chain(switches, hosts);
        let picture = Picture::of(&lab);
        let layout = placed(&picture);
        let areas = areas(&picture, &layout);
        for (number, (name, area)) in areas.iter().enumerate() {
            assert!(area.width > 0.0, "{name} has no place");
            for (other, there) in &areas[number + 1..] {
                assert!(
                    !area.meets(there, 0.0),
                    "{switches} switches: {name} {area:?} meets {other} {there:?}"
                );
            }
        }
        let reach = |of: fn(&Area) -> f64| layout.boxes.iter().map(of).fold(1.0, f64::max);
        let form = reach(|area| area.x) / reach(|area| area.y);
        assert!(
            (0.25..6.1).contains(&form),
            "{switches} switches, {hosts} hosts: {form}"
        );
        for (number, way) in layout.ways.iter().enumerate() {
            assert!(way.len() > 1, "line {number} has no way");
        }
        assert!(draw(&picture).is_ok());
    }
}

#[test]
fn hosts_of_a_lab_that_is_too_large_are_counted_at_their_switches() {
    let picture = Picture::of(&chain(2, 1500));
    let svg = draw(&picture.drawn()).unwrap();
    assert!(svg.contains("switch, +750 hosts"), "{svg}");
    assert!(!svg.contains(">h7<"));
}

#[test]
fn more_links_than_anybody_could_read_are_refused_with_their_number() {
    let mut picture = Picture::of(&chain(2, 2));
    picture.cables = vec![picture.cables[0].clone(); 2001];
    assert_eq!(
        draw(&picture).unwrap_err().to_string(),
        "a drawing has at most 2000 links, and these are 2001"
    );
}

#[test]
fn what_a_running_lab_adds_is_drawn_and_its_labels_lie_on_nothing() {
    let campus = labs().into_iter().find(|lab| lab.name == "campus").unwrap();
    let mut picture = Picture::of(&campus);
    picture.running = true;
    let machine = |name: &str| {
        let mut machines = picture.machines.iter();
        machines.position(|m| m.name == name).unwrap()
    };
    let cable = |a: &str, b: &str| {
        let ends = [machine(a), machine(b)];
        let is = |c: &Cable| ends.iter().all(|end| c.ends.contains(end));
        picture.cables.iter().position(is).unwrap()
    };
    let (urku, basso, sello) = (machine("urku"), machine("basso"), machine("sello"));
    let way = |stops: &[&str]| {
        stops
            .windows(2)
            .map(|pair| cable(pair[0], pair[1]))
            .collect()
    };
    let thread = |from: usize, via: Vec<usize>| Thread {
        from,
        via,
        network: None,
        data: true,
        pending: false,
        rate: 1000.0,
    };
    let threads = vec![
        thread(urku, way(&["urku", "asx200", "basso"])),
        thread(basso, way(&["basso", "asx200", "urku"])),
        thread(urku, way(&["urku", "asx200", "ls1010", "asx1000", "sello"])),
        thread(urku, way(&["urku", "asx200"])),
    ];
    let shortcut = |ends, to: &str, thread| Shortcut {
        ends,
        to: to.into(),
        vc: "0.39".into(),
        thread: Some(thread),
    };
    picture.shortcuts = vec![
        shortcut([urku, basso], "10.4.0.10", 0),
        shortcut([basso, urku], "10.1.0.10", 1),
        shortcut([urku, sello], "10.3.0.10", 2),
    ];
    picture.threads = threads;
    picture.cables[0].down = true;
    picture.machines[urku].down = true;
    let layout = placed(&picture);
    let areas = areas(&picture, &layout).into_iter();
    let before: Vec<Area> = areas.map(|(_, area)| area).collect();
    let ways = Ways::new(&picture, &layout);
    let plates = threads_of(&picture, &ways, before.clone());
    assert_eq!(plates.len(), 3);
    for (number, (label, area)) in plates.iter().enumerate() {
        let others = plates[number + 1..].iter().map(|(_, area)| area);
        let mut all = before.iter().chain(others);
        assert!(!all.any(|other| other.meets(area, 0.0)), "{label}");
    }
    // No two threads share a lane on a link.
    let all: Vec<&Thread> = picture.threads.iter().collect();
    let lanes = ways.lanes(&all);
    for (number, thread) in all.iter().enumerate() {
        for other in number + 1..all.len() {
            let share = thread.via.iter().any(|link| all[other].via.contains(link));
            assert!(
                !share || lanes[number] != lanes[other],
                "{number} and {other}"
            );
        }
    }
    let drawing = draw(&picture).unwrap();
    for needed in [
        "class=\"shortcut\"",
        "class=\"calls\"",
        "class=\"cut\"",
        "class=\"empty\"",
        ">shortcut urku → sello<",
        ">down<",
        ">cut<",
        "ELAN core 10.9.0.0/24",
        ">cut or down<",
    ] {
        assert!(drawing.contains(needed), "{needed}");
    }
}

fn threads_of(picture: &Picture, ways: &Ways<'_>, mut taken: Vec<Area>) -> Vec<(String, Area)> {
    threads(picture, ways, &mut taken, &mut Canvas::default())
}
