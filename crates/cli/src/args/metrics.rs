//! Arguments of `metrics`.

use crate::names;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;

#[derive(Debug, Args)]
#[command(after_help = "\
Without --listen the metrics of now are written once. With it, Prometheus reads
them at http://ADDRESS:PORT/metrics, in its text format or in OpenMetrics as it
asks, until Ctrl-C. Labs are looked for at each reading, so they may come and
go. docs/metrics.md has all names, and docs/metrics-dashboard.json is a
dashboard for Grafana.

Examples:
  aerostat metrics
  aerostat metrics campus -o openmetrics
  aerostat metrics --counters
  aerostat metrics --listen 127.0.0.1:9464")]
pub(crate) struct MetricsArgs {
    /// Name of the lab; all running labs if it is left out
    #[arg(value_name = "LAB", conflicts_with = "lab", add = names::labs())]
    pub(crate) name: Option<String>,
    /// The same
    #[arg(long, value_name = "NAME", hide = true, add = names::labs())]
    pub(crate) lab: Option<String>,
    /// Serve them at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Add the counters of clients and servers, as 'inspect' has them
    #[arg(long)]
    pub(crate) counters: bool,
    /// Format of what is written once
    #[arg(short, long, value_enum, default_value_t, conflicts_with = "listen")]
    pub(crate) output: MetricsFormat,
}

/// Formats of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// Prometheus' text format, version 0.0.4
    #[default]
    Prometheus,
    /// OpenMetrics, version 1.0.0
    Openmetrics,
}
