//! Runs inputs without libFuzzer: `cargo run --example once TARGET FILE...`

fn main() {
    let mut args = std::env::args().skip(1);
    let target = args.next().unwrap_or_default();
    let run: fn(&[u8]) = match target.as_str() {
        "decode" => aerostat_fuzz::decode::run,
        "explain" => aerostat_fuzz::explain::run,
        "machine_atp" => aerostat_fuzz::atp::run,
        "machine_lane" => aerostat_fuzz::lane::run,
        "machine_mpoa" => aerostat_fuzz::mpoa::run,
        "machine_nhrp" => aerostat_fuzz::nhrp::run,
        "machine_sscop" => aerostat_fuzz::sscop::run,
        "machine_tcp" => aerostat_fuzz::tcp::run,
        "machine_uni" => aerostat_fuzz::uni::run,
        "mutants" => aerostat_fuzz::mutants::run,
        "sequences" => aerostat_fuzz::sequences,
        "split" => aerostat_fuzz::split::run,
        _ => panic!("no target {target:?}"),
    };
    for file in args {
        let input = std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        run(&input);
        println!("{file}: ok");
    }
}
