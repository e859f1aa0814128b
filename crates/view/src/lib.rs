//! Results of a lab for people: tables, warnings, drawings, and the page of `run --view`.
//!
//! | part | modules |
//! |---|---|
//! | tables, and those of a run with fewer columns and digits | [`rows`], [`people`] |
//! | reasons for warnings at the end of a run | [`warnings`] |
//! | the network as an SVG drawing: places of boxes and lines, colours and glyphs | [`drawing`], [`signs`] |
//! | the recorded page | [`page`] |
//!
//! Nothing here needs an operating system: the command and a browser's tab (`aerostat-web`) show the same.

pub mod drawing;
mod layout;
pub mod page;
pub mod people;
mod positions;
pub mod rows;
pub mod signs;
pub mod warnings;

pub use positions::positions;
pub use rows::Rows;

/// A text inside an element or an attribute of HTML or SVG.
#[must_use]
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
