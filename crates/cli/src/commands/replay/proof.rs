//! The result of a replay, as text and as JSON.

use std::fmt::Write as _;

use plimsoll_decisions::{Difference, Missing, Position, Proof, RunHeader};
use plimsoll_policy::{BackendId, Decision};
use plimsoll_report::format::count;
use serde_json::{Value, json};

/// Why the proof failed; `None` when it did not.
pub(super) fn objection(proof: &Proof, partial: bool) -> Option<String> {
    let (decisions, identical) = proof.decisions();
    if proof.is_refuted() {
        let differ = decisions - identical;
        return Some(format!("{} of {} decisions came out differently", count(differ), count(decisions)));
    }
    if partial || proof.is_proved() {
        return None;
    }
    let whole =
        proof.missing.is_empty() && proof.dropped_chunks == 0 && proof.runs.iter().all(|run| run.whole);
    let lacks = if whole {
        "the log lacks its end, so that nothing is proved about what may follow"
    } else {
        "the log is not whole, so that nothing is proved about what follows the missing part"
    };
    Some(format!("{lacks}; --partial accepts that"))
}

/// `1 decision`, `2 decisions`.
fn counted(many: u64, what: &str) -> String {
    format!("{} {what}{}", count(many), if many == 1 { "" } else { "s" })
}

pub(super) fn text(proof: &Proof) -> String {
    let mut out = String::new();
    for (i, run) in proof.runs.iter().enumerate() {
        let same = if run.identical == run.decisions {
            "all identical".to_owned()
        } else {
            format!("{} identical", count(run.identical))
        };
        let start = if run.whole { "from its start" } else { "from somewhere in between, proving nothing" };
        let _ = writeln!(
            out,
            "Run {}: {}, {start}: {}, {}, {same}",
            i + 1,
            describe(&run.header),
            counted(run.events, "event"),
            counted(run.decisions, "decision"),
        );
    }
    for (position, missing) in &proof.missing {
        let _ = match missing {
            Missing::Start => writeln!(out, "Missing: the start of the run was rotated away ({position})"),
            Missing::Chunks(chunks) => writeln!(out, "Missing: {} chunks ({position})", count(*chunks)),
        };
    }
    if proof.dropped_chunks > 0 {
        let chunks = count(proof.dropped_chunks);
        let _ = writeln!(
            out,
            "Dropped: {chunks} chunks, for the disk was too slow or failed; the writer says so"
        );
    }
    for (position, unread_bytes) in &proof.truncated {
        let _ = writeln!(
            out,
            "Cut: a record is not whole ({position}), {} bytes were not read: a crash, damage, or the log is being written",
            count(*unread_bytes)
        );
    }
    for position in &proof.endless {
        let _ = writeln!(
            out,
            "No end: the log was not closed ({position}): its front-end crashed or still runs, or files are missing"
        );
    }
    if proof.full {
        out += "Full: the log stopped because its files were full\n";
    }
    if let Some(difference) = &proof.first_difference {
        out += "\n";
        out += &difference_text(difference);
        out += "\n";
    }
    let (decisions, identical) = proof.decisions();
    let verdict = if proof.is_proved() {
        "identical"
    } else if proof.is_refuted() {
        "NOT identical"
    } else {
        "not proved"
    };
    let _ = writeln!(out, "{} of {} agree: {verdict}", count(identical), counted(decisions, "decision"));
    out
}

/// A run in a few words.
pub(super) fn describe(run: &RunHeader) -> String {
    let settings: String = run.settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let started = started(run).map_or_else(String::new, |s| format!(", started {s}"));
    format!("{}{settings} on {} back-ends{started}", run.policy, run.backends.len())
}

/// When a run started, in UTC.
pub(super) fn started(run: &RunHeader) -> Option<String> {
    let at = jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns)).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn difference_text(d: &Difference) -> String {
    let loads: Vec<String> = d
        .loads
        .iter()
        .enumerate()
        .map(|(i, load)| format!("{} {load}", name(d, BackendId::new(i))))
        .collect();
    let set: Vec<String> = d.server_set.iter().map(|&b| name(d, b)).collect();
    let set = if set.is_empty() { "none kept".to_owned() } else { set.join(", ") };
    format!(
        "First difference: event {} of the log, {}\n  time        {} s\n  request     {}, target {:016x}\n  \
         logged      {}\n  replayed    {}\n  server set  {set} (after the replayed decision)\n  loads       {} \
         (before it)\n",
        d.event,
        d.position,
        d.now,
        d.request.number,
        d.request.target.0,
        decision(d, d.logged),
        decision(d, d.replayed),
        loads.join(", "),
    )
}

fn name(d: &Difference, b: BackendId) -> String {
    d.names.get(b.index()).map_or_else(|| format!("back-end {}", b.0), Clone::clone)
}

fn decision(d: &Difference, decision: Decision) -> String {
    match decision {
        Decision::Assign(b) => format!("{} (back-end {})", name(d, b), b.0),
        Decision::Poll(candidates) => {
            let names: Vec<String> = candidates.as_slice().iter().map(|&b| name(d, b)).collect();
            format!("poll {}", names.join(", "))
        }
        Decision::Wait => "wait".to_owned(),
        Decision::Reject => "reject".to_owned(),
    }
}

pub(super) fn json(proof: &Proof) -> String {
    let (decisions, identical) = proof.decisions();
    let runs: Vec<Value> = proof
        .runs
        .iter()
        .map(|run| {
            json!({
                "policy": run.header.policy, "settings": settings(&run.header.settings), "seed": run.header.seed,
                "backends": run.header.backends.len(), "started": started(&run.header), "whole": run.whole,
                "events": run.events, "decisions": run.decisions, "identical": run.identical,
            })
        })
        .collect();
    let missing: Vec<Value> = proof
        .missing
        .iter()
        .map(|(position, missing)| match missing {
            Missing::Start => json!({"what": "start", "chunks": null, "at": place(position)}),
            Missing::Chunks(chunks) => json!({"what": "chunks", "chunks": chunks, "at": place(position)}),
        })
        .collect();
    json!({
        "proved": proof.is_proved(), "events": proof.events, "decisions": decisions, "identical": identical,
        "runs": runs, "first_difference": proof.first_difference.as_ref().map(difference_json),
        "missing": missing, "dropped_chunks": proof.dropped_chunks,
        "truncated": proof.truncated.iter().map(cut).collect::<Vec<_>>(),
        "endless": proof.endless.iter().map(place).collect::<Vec<_>>(),
        "full": proof.full, "ended": proof.ended,
    })
    .to_string()
}

/// Settings as an object.
pub(super) fn settings(settings: &[(String, String)]) -> Value {
    Value::Object(settings.iter().map(|(key, value)| (key.clone(), Value::String(value.clone()))).collect())
}

fn place(position: &Position) -> Value {
    json!({"file": position.file.display().to_string(), "byte": position.offset})
}

fn cut((position, unread_bytes): &(Position, u64)) -> Value {
    let Position { file, offset } = position;
    json!({"file": file.display().to_string(), "byte": offset, "unread_bytes": unread_bytes})
}

fn difference_json(d: &Difference) -> Value {
    let decision = |decision| match decision {
        Decision::Assign(b) => json!({"assign": b.0}),
        Decision::Poll(candidates) => {
            json!({"poll": candidates.as_slice().iter().map(|b| b.0).collect::<Vec<_>>()})
        }
        Decision::Wait => json!("wait"),
        Decision::Reject => json!("reject"),
    };
    json!({
        "event": d.event, "at": place(&d.position), "time_s": d.now.as_secs_f64(), "request": d.request.number,
        "target": format!("{:016x}", d.request.target.0), "logged": decision(d.logged),
        "replayed": decision(d.replayed), "server_set": d.server_set.iter().map(|b| b.0).collect::<Vec<_>>(),
        "loads": d.loads, "backends": d.names,
    })
}
