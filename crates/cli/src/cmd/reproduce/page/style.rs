//! The style of the report: dark text on white, for screens and for paper.

pub(super) const CSS: &str = "
body { color: #111; background: #fff; font: 15px/1.45 'DejaVu Sans', Verdana, Arial, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem } h3 { font-size: 1rem; margin-bottom: .3rem }
section { border-top: 2px solid #999; margin-top: 2.5rem }
table { border-collapse: collapse; margin: .8rem 0; font-size: .82rem; width: 100% }
th { text-align: left; border-bottom: 2px solid #444; vertical-align: bottom }
th, td { padding: .18rem .5rem } td { border-bottom: 1px solid #ccc; vertical-align: top }
th.n { text-align: right } .keys td { overflow-wrap: anywhere } .keys td.r { min-width: 16em }
td.r { min-width: 8.5em } td.e { white-space: nowrap }
td.n, span.n { font-variant-numeric: tabular-nums; white-space: nowrap } td.n { text-align: right }
td.ok { color: #00543d; font-weight: bold } td.miss { color: #9c2f00; font-weight: bold }
td.calibration, td.shown { color: #444; font-style: italic }
figure { margin: 1rem 0; break-inside: avoid } figure svg { width: 100%; height: auto; border: 1px solid #ccc }
figcaption, .small { font-size: .8rem; color: #444 }
code, pre { font-family: 'DejaVu Sans Mono', Consolas, monospace; font-size: .8rem }
pre { border: 1px solid #ccc; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere }
.keys { font-size: .74rem } .keys code { font-size: .72rem; margin-right: .6em }
a { color: #00538a }
@media screen and (max-width: 760px) {
  body { margin: 1rem auto; padding: 0 .6rem; font-size: 14px } h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
  table { display: block; overflow-x: auto; width: max-content; max-width: 100% }
  td { max-width: 16em } td.n { max-width: none } .keys td { max-width: 22em }
  figure { overflow-x: auto } figure svg { width: 720px; max-width: none }
}
@page { size: A4; margin: 16mm 14mm }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 9.5pt } table { font-size: 7.8pt }
  figure svg { width: 84%; border: 0 }
  section { break-before: page; border-top: 0; margin-top: 0 }
  h2, h3 { break-after: avoid } tr { break-inside: avoid } thead { display: table-header-group }
  a { color: inherit; text-decoration: none }
}
";
