//! `plimsoll lab link`: the conditions of a node's link, shown or changed while the lab runs.

use plimsoll_lab::{Conditions, Lab, Node};

use super::conditions::ConditionOptions;
use super::control::{self, LinkAnswer, LinkRequest};
use super::link_report::LinkReport;
use super::note;
use crate::error::CliError;
use crate::output;

/// Arguments of `lab link`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without conditions it shows those of the link, and what became of the frames. Given conditions change, the others stay; \
--clear makes the link perfect first. Frames that are held leave when they were due.

Examples:
  plimsoll lab link client --delay 25ms --loss 1% --reorder 1%
  plimsoll lab link b0 --way to --delay 10ms --pareto 1.5 --order independent
  plimsoll lab link mylab client
  plimsoll lab link client --clear")]
pub(super) struct Args {
    /// The lab, which may be left out if there is only one, and the node: client, front-end, b0, b1 and so on
    #[arg(value_names = ["LAB", "NODE"], num_args = 1..=2, required = true)]
    place: Vec<String>,

    /// Which frames: those that the node sends (from), those to it (to), or both
    #[arg(long, value_enum, default_value = "both")]
    way: Ways,

    /// Make the link perfect, before other options
    #[arg(long)]
    clear: bool,

    /// Print the link as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    options: ConditionOptions,
}

/// Which direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Ways {
    From,
    To,
    Both,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (lab, node) = match args.place.as_slice() {
        [lab, node] => (Some(lab.as_str()), node.as_str()),
        // There is at least one.
        _ => (None, args.place.first().map_or("", String::as_str)),
    };
    if node.parse::<Node>()? == Node::Switch {
        return Err(CliError::Usage("the switch has no link to itself; name another node".to_owned()));
    }
    let note = note::find(lab)?;
    note.node(node)?;
    let request = LinkRequest {
        node: node.to_owned(),
        clear: args.clear,
        ways: [args.way != Ways::To, args.way != Ways::From],
        options: args.options.clone(),
    };
    let report = control::ask(&note.name, &request)?;
    if args.json {
        let text = serde_json::to_string(&report).map_err(|e| CliError::Failed(e.to_string()))?;
        return output::print(&text);
    }
    output::print(&report.in_words())
}

/// Does what is asked, in the process that has the lab.
pub(super) fn carry_out(lab: &Lab, request: &LinkRequest) -> LinkAnswer {
    match changed(lab, request) {
        Ok(report) => LinkAnswer::Link(Box::new(report)),
        Err(CliError::Usage(text)) => LinkAnswer::Wrong(text),
        Err(other) => LinkAnswer::Failed(other.to_string()),
    }
}

fn changed(lab: &Lab, request: &LinkRequest) -> Result<LinkReport, CliError> {
    let link = lab.link(request.node.parse()?)?;
    if request.clear || !request.options.is_empty() {
        let mut conditions = link.conditions();
        for (one, _) in conditions.iter_mut().zip(request.ways).filter(|(_, is_meant)| *is_meant) {
            if request.clear {
                *one = Conditions::default();
            }
            request.options.change(one)?;
        }
        let [from_node, to_node] = &conditions;
        link.set_each(from_node, to_node)?;
    }
    let statistics = link.statistics()?;
    Ok(LinkReport::new(request.node.clone(), &link.conditions(), statistics.as_ref()))
}
