//! Pages of a site in which labs run in the browser's tab: `aerostat view --site DIR`.
//!
//! ```text
//! DIR/index.html   list of the labs        DIR/site.css   style of all pages
//! DIR/LAB.html     page of a lab           DIR/site.js    script of all pages
//!                                          DIR/module.js  the simulator (crates/web), gzip in base64
//! ```
//!
//! A site needs no server: pages of files may load scripts that lie beside them, but start no worker from a file and
//! fetch nothing. So the module is a script, and the worker's script is a part of the page's. The policy of every page
//! forbids all requests except those for its own files.
//!
//! **Names are text.** A lab file may come from any author; what is written here is escaped for HTML.

use aerostat_view::page::fill;
use aerostat_view::{escaped, signs};
use std::fmt::Write as _;

const LAB: &str = include_str!("site/lab.html");
const INDEX: &str = include_str!("site/index.html");
const STYLE: &str = include_str!("site/site.css");

/// Name and version of the module that the pages need.
pub(crate) const MODULE: &str = concat!("aerostat-web ", env!("CARGO_PKG_VERSION"));

/// Requests that a page may make: for its own files. Scripts in it are those of the recorded page, which it frames.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:; \
                      style-src 'self' 'unsafe-inline'; worker-src blob:; frame-src blob:; img-src data: blob:";

/// The files of the script, in the order in which they are joined.
macro_rules! scripts {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("site/", $name)))),+]
    };
}
const SCRIPTS: &[(&str, &str)] = scripts! {
    "worker.js"
    "engine.js"
    "editor.js"
    "results.js"
    "main.js"
    "start.js"
};

/// A lab of a site.
#[derive(Debug)]
pub(crate) struct Page {
    /// Name of its page without the extension.
    pub(crate) name: String,
    /// Name of the lab file, for findings.
    pub(crate) file: String,
    /// Its description, if the lab is valid and has one.
    pub(crate) description: Option<String>,
    /// Its text.
    pub(crate) text: String,
}

impl Page {
    /// The page.
    pub(crate) fn html(&self) -> String {
        let description = self.description.as_deref().unwrap_or_default();
        fill(
            LAB,
            &[
                ("<!--POLICY-->", &escaped(POLICY)),
                ("<!--FILE-->", &escaped(&self.file)),
                ("<!--MODULE-->", MODULE),
                ("<!--TITLE-->", &escaped(&self.name)),
                ("<!--DESCRIPTION-->", &escaped(description)),
                ("<!--TEXT-->", &escaped(&self.text)),
                ("<!--VERSION-->", env!("CARGO_PKG_VERSION")),
                ("<!--LICENSE-->", env!("CARGO_PKG_LICENSE")),
            ],
        )
    }
}

/// The list of the labs.
pub(crate) fn index(pages: &[Page]) -> String {
    let mut list = String::new();
    for Page {
        name, description, ..
    } in pages
    {
        let (name, about) = (escaped(name), description.as_deref().unwrap_or_default());
        // Writing to a String cannot fail.
        let _ = writeln!(
            list,
            "<dt><a href=\"{name}.html\">{name}</a></dt><dd>{}</dd>",
            escaped(about)
        );
    }
    fill(
        INDEX,
        &[
            ("<!--POLICY-->", &escaped(POLICY)),
            ("<!--LABS-->", &list),
            ("<!--VERSION-->", env!("CARGO_PKG_VERSION")),
            ("<!--LICENSE-->", env!("CARGO_PKG_LICENSE")),
        ],
    )
}

/// The style sheet.
pub(crate) fn style() -> String {
    format!("{}\n{STYLE}", signs::rules())
}

/// The script.
pub(crate) fn script() -> String {
    let scripts: Vec<&str> = SCRIPTS.iter().map(|(_, text)| *text).collect();
    scripts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_of_the_folder_is_in_the_site_once() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/site");
        let files = std::fs::read_dir(folder).expect("the folder");
        let names = files.map(|file| file.expect("a file").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut there: Vec<String> = names.filter(|name| name.ends_with(".js")).collect();
        let mut joined: Vec<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        there.sort_unstable();
        joined.sort_unstable();
        assert_eq!(there, joined);
    }

    #[test]
    fn a_lab_cannot_write_markup_into_its_page() {
        let page = Page {
            name: "a<b".into(),
            file: "\"x\".atm.yml".into(),
            description: Some("<script>1</script><!--TEXT-->".into()),
            text: "</textarea><script>2</script><!--VERSION-->&amp;".into(),
        };
        let (html, list) = (page.html(), index(&[page]));
        for text in [&html, &list] {
            assert!(!text.contains("<script>"), "{text}");
            assert!(text.contains("a&lt;b"), "{text}");
        }
        assert!(html.contains("&lt;/textarea&gt;&lt;script&gt;2"));
        assert!(html.contains("&lt;!--VERSION--&gt;&amp;amp;"));
        assert!(html.contains("data-file=\"&quot;x&quot;.atm.yml\""));
    }
}
