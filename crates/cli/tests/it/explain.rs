//! `aerostat explain`: captures of our own runs name nothing, GNS3's cells are repaired, and tshark reads the same.

use aerostat_testing::command::{Ran, command, ok, run, scratch};
use aerostat_testing::wireshark::{malformed_filter, tshark};
use aerostat_wire::aal5::Segmenter;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm};
use aerostat_wire::{MacAddr, Vc};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn json(file: &Path, more: &[&str]) -> (i32, Value) {
    let file = file.display().to_string();
    let ran = run(&[&["explain", &file, "-o", "json"], more].concat());
    let document = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
    (ran.code, document)
}

/// A directory of its own for one test.
fn folder(name: &str) -> PathBuf {
    let folder = scratch().join(format!("explain-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a directory");
    folder
}

/// Labs with signalling, LANE, Classical IP, ILMI, NHRP and MPOA, without a fault in the time that is recorded, and a
/// change of each.
const CLEAN: [(&str, &str, &str); 8] = [
    ("two-hosts", "6s", "hosts.urku.ilmi=true"),
    ("two-subnets", "4050ms", "seed=1"),
    ("one-elan", "2100ms", "seed=1"),
    ("clip", "300ms", "seed=1"),
    ("nhrp", "6s", "seed=1"),
    ("managers", "2s", "seed=1"),
    ("vlans", "1s", "seed=1"),
    ("wan-detour", "1s", "seed=1"),
];

#[test]
fn captures_of_our_own_runs_name_nothing() {
    let mut files = 0;
    let mut protocols = std::collections::BTreeSet::new();
    for (lab, until, change) in CLEAN {
        let folder = folder(lab);
        let to = folder.display().to_string();
        let ran = run(&[
            "run",
            &format!("labs/{lab}.atm.yml"),
            "-q",
            "--set",
            change,
            "--until",
            until,
            "--pcap",
            &to,
        ]);
        assert!(matches!(ran.code, 0 | 3), "{lab}: {}", ran.err);
        for file in std::fs::read_dir(&folder).expect("captures") {
            let file = file.expect("a file").path();
            let (code, document) = json(&file, &[]);
            let findings = &document["findings"];
            assert_eq!(
                (code, findings.as_array().map(Vec::len)),
                (0, Some(0)),
                "{file:?}: {findings:#}"
            );
            files += 1;
            let messages = document["messages"].as_array().expect("a ladder");
            let of = messages.iter().filter_map(|one| one["protocol"].as_str());
            protocols.extend(of.map(str::to_owned));
        }
    }
    assert!(files >= 30, "{files} captures");
    let wanted = ["arp", "ilmi", "lane", "mpoa", "nhrp", "q2931", "sscop"];
    assert_eq!(
        protocols.iter().map(String::as_str).collect::<Vec<_>>(),
        wanted
    );
}

/// A lab with the password of Cisco's routers: its stations talk, and everybody reads the password.
#[test]
fn a_lab_with_a_password_in_clear_text_works_and_is_named() {
    let folder = folder("clear");
    let to = folder.display().to_string();
    let change = "nhrp.key={ spi: 1, secret: geheim, clear_text: true }";
    let lab = "labs/nhrp.atm.yml";
    let args = [
        "run", lab, "-q", "--until", "6s", "--set", change, "--pcap", &to,
    ];
    let ran = run(&args);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.err);
    let (code, document) = json(&folder.join("x.pcapng"), &[]);
    assert_eq!(code, 1);
    let broken = document["broken"].as_array().expect("rules");
    let rules: Vec<_> = broken.iter().map(|one| one["rule"].as_str()).collect();
    assert_eq!(rules, [Some("nhrp-clear")], "{document:#}");
    let text = document["findings"][0]["text"].as_str().expect("a text");
    assert!(
        text.starts_with("the password 'geheim' in clear text"),
        "{text}"
    );
    let story = document["story"].as_array().expect("a story");
    let registered = |one: &Value| {
        one["text"]
            .as_str()
            .is_some_and(|text| text.contains(" registers "))
    };
    assert!(story.iter().any(registered), "{story:#?}");
}

/// Fields of the ladder that Wireshark decodes, too.
#[test]
fn tshark_reads_the_same_messages() {
    let folder = folder("tshark");
    let to = folder.display().to_string();
    ok(&[
        "run",
        "labs/two-hosts.atm.yml",
        "-q",
        "--until",
        "3s",
        "--pcap",
        &to,
    ]);
    let file = folder.join("s1.pcapng");
    let (_, document) = json(&file, &["--messages", "100000"]);
    let of = |protocol: &str| -> Vec<(u64, String)> {
        let messages = document["messages"].as_array().expect("a ladder").iter();
        let own = messages.filter(|one| one["protocol"] == protocol);
        own.map(|one| {
            let text = one["text"].as_str().expect("a text");
            (one["packet"].as_u64().expect("a number"), text.to_owned())
        })
        .collect()
    };
    let fields = |filter: &str, field: &str| -> Option<Vec<(u64, String)>> {
        let wanted = [
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
            "-e",
            field,
        ];
        let lines = tshark(&file, &wanted)?.into_iter();
        let split = lines.map(|line| {
            let (number, value) = line.split_once('\t').expect("two columns");
            (number.parse().expect("a number"), value.to_owned())
        });
        Some(split.collect())
    };
    let last = |text: &str, key: &str| {
        let (_, rest) = text.split_once(key).expect("a field");
        rest.split(' ').next().expect("a word").to_owned()
    };
    // Numbers of calls, of polls and of LANE transactions.
    let Some(calls) = fields("q2931.call_ref", "q2931.call_ref") else {
        return;
    };
    let number = |(packet, text): &(u64, String)| {
        let digits = text.replace(':', "");
        let value = u32::from_str_radix(digits.trim_start_matches("0x"), 16).expect("a number");
        (*packet, (value & 0x7f_ffff).to_string())
    };
    let own: Vec<_> = of("q2931")
        .iter()
        .map(|(at, text)| (*at, last(text, " cr ")))
        .collect();
    assert!(own.len() > 20);
    assert_eq!(calls.iter().map(number).collect::<Vec<_>>(), own);
    let polls = fields("sscop.type == 0x0a", "sscop.ps").expect("tshark is here");
    let own: Vec<_> = of("sscop")
        .into_iter()
        .filter(|(_, text)| text.starts_with("POLL"))
        .collect();
    let own: Vec<_> = own
        .iter()
        .map(|(at, text)| (*at, last(text, " ps ")))
        .collect();
    assert_eq!(polls, own);
    let lane = fields("lane", "_ws.col.Info").expect("tshark is here");
    let own = of("lane");
    assert_eq!(
        lane.iter()
            .filter(|(at, _)| own.iter().any(|(own, _)| own == at))
            .count(),
        own.len()
    );
}

/// NHRP of Debian's FRR over GRE: type, id, addresses and codes.
#[test]
fn tshark_reads_the_same_of_frr() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tests/vectors/frr");
    let fields = [
        "frame.number",
        "nhrp.hdr.op.type",
        "nhrp.reqid",
        "nhrp.src.prot.addr",
        "nhrp.dst.prot.addr",
        "nhrp.code",
        "nhrp.err.code",
        "nhrp.client.prot.addr",
        "nhrp.client.nbma.addr",
    ];
    let mut wanted = vec!["-Y", "nhrp", "-T", "fields", "-E", "occurrence=f"];
    wanted.extend(fields.iter().flat_map(|field| ["-e", field]));
    let mut kinds = std::collections::BTreeSet::new();
    for name in ["clean", "password", "refused", "key"] {
        let file = folder.join(name).with_extension("pcap");
        let Some(lines) = tshark(&file, &wanted) else {
            return;
        };
        let (_, document) = json(&file, &[]);
        let messages = document["messages"].as_array().expect("a ladder");
        assert_eq!(messages.len(), lines.len(), "{name}");
        for (message, line) in messages.iter().zip(&lines) {
            let columns: Vec<&str> = line.split('\t').collect();
            let &[number, kind, id, from, to, code, error, client, nbma] = &columns[..] else {
                panic!("{line}");
            };
            let id = id.trim_start_matches("0x");
            let id =
                u32::from_str_radix(id, 16).map_or_else(|_| String::new(), |id| id.to_string());
            let text = message["text"].as_str().expect("a text");
            assert_eq!(message["packet"].to_string(), number, "{name}");
            kinds.insert(kind.to_owned());
            let expected = match kind {
                "1" => format!("NHRP Resolution Request id {id} {from} → {to}"),
                "2" => format!(
                    "NHRP Resolution Reply id {id} {from} → {to} via {client} code {code} at {nbma}"
                ),
                "3" => format!("NHRP Registration Request id {id} {from} → {to}"),
                "4" => format!("NHRP Registration Reply id {id} {from} → {to} code {code}"),
                "7" => format!(
                    "NHRP Error Indication {from} → {to} code {error} (authentication failure)"
                ),
                "8" => format!("NHRP Traffic Indication {from} → {to}"),
                other => panic!("type {other}"),
            };
            assert_eq!(text, expected, "{name}, packet {number}");
        }
    }
    assert_eq!(kinds.len(), 6, "all kinds of messages: {kinds:?}");
}

/// A pcap under link type 100 with the cells of these SDUs, as Dynamips writes it for GNS3.
fn gns3(sdus: &[(Vc, Vec<u8>)]) -> Vec<u8> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 100]);
    for (second, (vc, sdu)) in (1_u32..).zip(sdus) {
        for (payload, pti) in Segmenter::new(sdu, 0) {
            let header = CellHeader {
                pti,
                ..CellHeader::user(*vc, false)
            };
            file.extend(words(&[second, 0, 53, 53]));
            file.extend(Cell { header, payload }.encode(HeaderForm::Nni));
        }
    }
    file
}

#[test]
fn cells_of_gns3_are_explained_and_repaired() {
    let folder = folder("gns3");
    let (file, out) = (folder.join("gns3.pcap"), folder.join("repaired.pcapng"));
    let [one, other] = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
    let mut bridged = vec![0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0];
    bridged.extend([other.0, one.0].concat());
    bridged.extend([0x88, 0xb5]);
    bridged.extend([7; 90]);
    let mut arp = vec![
        0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0, 0x13, 8, 0, 0, 0, 0, 8, 4, 0, 0, 4,
    ];
    arp.extend([10, 20, 0, 9, 0, 0, 0, 0]);
    let vc = Vc::new(1, 100);
    std::fs::write(&file, gns3(&[(vc, arp), (vc, bridged)])).expect("a file");
    let repair = ["--repair", &out.display().to_string()];
    let (code, document) = json(&file, &repair);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["raw_cells"], 4, "{document:#}");
    assert_eq!(
        (
            &document["raw_cells_sdus"],
            &document["raw_cells_link_type"]
        ),
        (&2.into(), &100.into())
    );
    assert_eq!(
        document["messages"][0]["text"],
        "InATMARP request 10.20.0.9 → 0.0.0.0"
    );
    let page = run(&["explain", &file.display().to_string()]);
    page.shows("4 raw cells under link type 100, as GNS3 writes them");
    // The second reading finds what the first one wrote.
    let (code, again) = json(&out, &[]);
    assert_eq!(
        (code, &again["messages"][0]["text"]),
        (0, &document["messages"][0]["text"])
    );
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.protocols",
        "-e",
        "atm.vpi",
        "-e",
        "atm.vci",
    ];
    let Some(read) = tshark(&out, &fields) else {
        return;
    };
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        read.iter().all(|line| line.ends_with("\t1\t100")),
        "{read:?}"
    );
    assert!(
        read[0].starts_with("atm:llc:arp") && read[1].starts_with("atm:llc:eth"),
        "{read:?}"
    );
    assert_eq!(tshark(&out, &["-Y", &malformed_filter()]), Some(vec![]));
}

#[test]
fn exit_codes_and_places_of_mistakes() {
    let folder = folder("codes");
    let file = folder.join("broken.pcap");
    // A cell whose HEC is wrong, among good ones.
    let mut octets = gns3(&vec![(Vc::new(0, 40), vec![0x45; 200]); 20]);
    let at = octets.len() - 53 + 4;
    octets[at] ^= 1;
    std::fs::write(&file, &octets).expect("a file");
    let shown = file.display().to_string();
    let ran = run(&["explain", &shown]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.shows("cell-hec (I.432.1 §4.3.2; 1 time)");
    let ran = run(&["explain", &shown, "-o", "csv"]);
    assert!(
        ran.out.lines().count() == 2 && ran.out.contains("cell-hec"),
        "{}",
        ran.out
    );
    std::fs::write(&file, &octets[..octets.len() - 60]).expect("a file");
    let ran = run(&["explain", &shown]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    ran.shows("the file ends inside a packet");
    std::fs::write(&file, b"no capture at all, but thirty octets").expect("a file");
    for (args, words) in [
        (
            &["explain", &shown][..],
            "no pcap and no pcapng at offset 0",
        ),
        (&["explain", "/nowhere/at.pcap"], "/nowhere/at.pcap"),
        (&["explain"], "FILE"),
        (&["explain", "--rules", &shown], "cannot be used with"),
    ] {
        let ran = run(args);
        ran.ends(2, words);
    }
}

/// No file is destroyed: neither the capture itself, nor what had the name when the capture cannot be read.
#[test]
fn a_repair_that_fails_leaves_all_files_as_they_were() {
    let folder = folder("repair");
    let (file, bad, out) = (
        folder.join("a.pcap"),
        folder.join("b.pcap"),
        folder.join("out.pcapng"),
    );
    let cells = gns3(&vec![(Vc::new(0, 40), vec![0x45; 200]); 20]);
    std::fs::write(&file, &cells).expect("a file");
    std::fs::write(&bad, b"no capture at all, but thirty octets").expect("a file");
    std::fs::write(&out, b"of yesterday").expect("a file");
    std::fs::hard_link(&file, folder.join("second.pcap")).expect("a link");
    let full = Path::new("/dev/full");
    let nowhere = folder.join("none/out.pcapng");
    let itself = "this is the capture itself";
    for (input, to, code, words) in [
        (&file, &*file, 2, itself),
        (&file, &folder.join("second.pcap"), 2, itself),
        (&bad, &out, 2, "no pcap and no pcapng"),
        (&folder.join("missing.pcap"), &out, 2, "No such file"),
        (&file, &nowhere, 1, "No such file"),
        (&file, &folder, 1, "no file"),
        (&file, full, 1, "No space left"),
    ] {
        let (input, to) = (input.display().to_string(), to.display().to_string());
        let ran = run(&["explain", &input, "--repair", &to]);
        assert_eq!(ran.code, code, "{to}: {}", ran.err);
        assert!(ran.err.contains(words), "{to}: {}", ran.err);
    }
    assert_eq!(std::fs::read(&file).expect("a file"), cells);
    assert_eq!(std::fs::read(&out).expect("a file"), b"of yesterday");
    let names = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(names, 4, "nothing else is there");
    ok(&[
        "explain",
        &file.display().to_string(),
        "--repair",
        &out.display().to_string(),
    ]);
    assert!(std::fs::read(&out).expect("a file").len() > 4000);
}

/// A directory is no capture, and no format either; standard input is read like a file; a reader that stops reading is
/// no failure.
#[test]
fn directories_pipes_and_readers_that_stop() {
    let folder = folder("pipes");
    let ran = run(&["explain", &folder.display().to_string()]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("Is a directory") && !ran.err.contains("editcap"),
        "{}",
        ran.err
    );
    let file = folder.join("long.pcap");
    let arp = [
        &[
            0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0, 0x13, 8, 0, 0, 0, 0, 8, 4, 0, 0, 4,
        ][..],
        &[10, 20, 0, 9, 0, 0, 0, 0],
    ];
    let arp = arp.concat();
    std::fs::write(&file, gns3(&vec![(Vc::new(0, 40), arp); 3000])).expect("a file");
    let piped = |tail: &str| {
        let program = command(&[]).get_program().to_owned();
        let script = format!("cat \"$2\" | \"$1\" explain - {tail}; echo \"${{PIPESTATUS[1]}}\"");
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &script, "bash"]).arg(program).arg(&file);
        Ran::from(shell.output().expect("bash runs"))
    };
    let whole = piped("| tail -n 1");
    assert!(
        whole.out.starts_with("3000 packets in "),
        "{}{}",
        whole.out,
        whole.err
    );
    for form in ["", "-o json "] {
        let ran = piped(&format!("--messages 3000 {form}| head -n 1"));
        assert!(ran.out.ends_with("\n0\n"), "{form}: {}{}", ran.out, ran.err);
        assert!(ran.err.is_empty(), "{}", ran.err);
    }
}

#[test]
fn the_list_of_rules_has_their_clauses() {
    let document = crate::json(&["explain", "--rules", "-o", "json"]);
    assert_eq!(document["schema"], "aerostat.explain.rules.v1");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), aerostat_explain::Rule::ALL.len());
    assert!(
        rows.len() >= 40
            && rows
                .iter()
                .all(|row| row["clause"].as_str().is_some_and(|c| c.contains('§')))
    );
    assert!(run(&["explain", "--rules"]).out.contains("nhrp-clear"));
}
