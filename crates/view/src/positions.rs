//! Positions of a drawing for the stream of events: those of the drawing of `graph`.

use crate::drawing;
use crate::layout::Area;
use aerostat_lab::picture::Picture;
use aerostat_lab::stream::Layout;

/// Room around the drawing, pixels.
const MARGIN: f64 = 8.0;

/// The positions of the machines of a drawing, and of the links between them.
#[must_use]
pub fn positions(picture: &Picture) -> Layout {
    let (found, lines) = drawing::place(picture);
    let mut made = Layout::default();
    for (machine, area) in picture.machines.iter().zip(&found.boxes) {
        add(&mut made, &machine.name, area);
    }
    // Links come first, then the Ethernet segments of stations.
    let named = picture.cables.iter().zip(&found.paths);
    let paths = named.map(|(cable, path)| (cable.name.clone(), path.clone()));
    made.paths = paths.collect();
    for (number, area) in &found.labels {
        if let (Some(cable), false) = (picture.cables.get(*number), lines[*number].label.is_empty())
        {
            made.labels
                .insert(cable.name.clone(), (tenth(area.x), tenth(area.y)));
        }
    }
    made
}

fn add(made: &mut Layout, name: &str, area: &Area) {
    let (right, bottom) = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    made.width = made.width.max(tenth(right + MARGIN));
    made.height = made.height.max(tenth(bottom + MARGIN));
    let numbers = [area.x, area.y, area.width, area.height].map(tenth);
    let [x, y, width, height] = numbers;
    made.boxes.push((name.to_owned(), x, y, width, height));
}

/// Tenths of a pixel are more than a screen can show.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
