//! Arguments of `overhead`.

use super::OutputArgs;
use aerostat_lab::units::bit_rate;
use aerostat_wire::line::Encapsulation;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Without an encapsulation the table has one row for each: octets beyond the IP
packet, the words of tc's cake, the overhead of tc stab on an Ethernet interface
(which counts the header of the frame: 14 less; 8 less again if the frames have
PPPoE already), and the cells of the largest packet. With one, a row for each
size of an IP packet. fits is the largest packet with as many cells: one octet
more costs 53 octets of the line. The modem says how a line is encapsulated.
--rate adds what a line of that rate carries: packets of the size per second,
and their kbit/s of IP. The rate is that of cells, as the modem shows it.

Examples:
  aerostat overhead
  aerostat overhead pppoe-llcsnap
  aerostat overhead pppoa-vcmux 40 576 1478 1500
  aerostat overhead pppoa-vcmux 200 1500 --rate 8128kbps
  aerostat overhead -o json | jq '.rows[].overhead_octets'
  tc qdisc replace dev ppp0 root cake bandwidth 980kbit atm overhead 40")]
pub(crate) struct OverheadArgs {
    /// How packets cross the line; without it, all ways
    #[arg(value_parser = encapsulation)]
    pub(crate) encapsulation: Option<Encapsulation>,
    /// Octets of IP packets, 20 to 9180
    #[arg(value_name = "SIZE", value_parser = clap::value_parser!(u16).range(20..=9180))]
    pub(crate) sizes: Vec<u16>,
    /// Rate of the line's cells, 1bps to 1000000Gbps: adds the packets per second that it carries, and their kbit/s
    #[arg(long, value_name = "RATE", value_parser = bit_rate, requires = "encapsulation")]
    pub(crate) rate: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn encapsulation(text: &str) -> Result<Encapsulation, String> {
    Encapsulation::by_name(text).ok_or_else(|| {
        let names = Encapsulation::ALL.map(Encapsulation::name);
        format!("expected one of {}", names.join(", "))
    })
}
