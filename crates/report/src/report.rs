//! Self-contained HTML reports: one file, no network request, readable without JavaScript.

use askama::Template;

use crate::{
    escape,
    mark::ReportMark,
    plot::{self, Plot},
    table::Table,
};

const STYLE: &str = include_str!("assets/report.css");
const TABLES: &str = include_str!("assets/tables.js");
const SCRIPT: &str = include_str!("assets/report.js");

/// plotly.js from the `plotly` package, unmodified, gzip and base64; made by the build script.
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz.base64"));

/// The page's content security policy: nothing may be fetched, whatever the scripts try.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:";

#[derive(Debug, Clone, PartialEq)]
enum ReportItem {
    Paragraph(String),
    Code(String),
    Table(Table),
    Explained(Table),
    FoldedTable(String, Table),
    Plot(Plot),
    FoldedPlots(String, Vec<Plot>),
}

/// A part of a report under one heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    heading: String,
    items: Vec<ReportItem>,
    two_columns: bool,
}

impl Section {
    /// An empty section.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), items: Vec::new(), two_columns: false }
    }

    /// The same section with two plots side by side where the page is wide enough.
    #[must_use]
    pub fn two_columns(mut self) -> Self {
        self.two_columns = true;
        self
    }

    /// The same section with a paragraph of plain text, which is escaped.
    #[must_use]
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.items.push(ReportItem::Paragraph(text.into()));
        self
    }

    /// The same section with lines to copy, which are escaped and shown as they are.
    #[must_use]
    pub fn code(mut self, lines: impl Into<String>) -> Self {
        self.items.push(ReportItem::Code(lines.into()));
        self
    }

    /// The same section with a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.items.push(ReportItem::Table(table));
        self
    }

    /// The same section with a table folded behind a line that the reader opens.
    #[must_use]
    pub fn folded_table(mut self, line: impl Into<String>, table: Table) -> Self {
        self.items.push(ReportItem::FoldedTable(line.into(), table));
        self
    }

    /// The same section with a table, and folded below it what its columns mean.
    #[must_use]
    pub fn explained_table(mut self, table: Table) -> Self {
        self.items.push(ReportItem::Explained(table));
        self
    }

    /// The same section with plots folded behind a line that the reader opens; none for no plots.
    #[must_use]
    pub fn folded_plots(mut self, line: impl Into<String>, plots: Vec<Plot>) -> Self {
        if !plots.is_empty() {
            self.items.push(ReportItem::FoldedPlots(line.into(), plots));
        }
        self
    }

    /// The same section with a plot.
    #[must_use]
    pub fn plot(mut self, plot: Plot) -> Self {
        self.items.push(ReportItem::Plot(plot));
        self
    }

    /// The same section with the contents of another one appended.
    #[must_use]
    pub fn append(mut self, other: Self) -> Self {
        self.items.extend(other.items);
        self
    }

    /// Whether nothing but the heading would be shown.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A report: header, conclusion in plain words, sections, footer. Every text is plain text and escaped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    title: String,
    subtitle: String,
    facts: Vec<(String, String)>,
    warnings: Vec<String>,
    conclusion: Vec<String>,
    sections: Vec<Section>,
    footer: Vec<(String, String)>,
    mark: Option<ReportMark>,
}

impl Report {
    /// A report without content.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), ..Self::default() }
    }

    /// The same report with a line in its header, e.g. what was run.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// The same report with a warning below its header.
    #[must_use]
    pub fn warning(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }

    /// The same report with a sentence of its conclusion, shown before everything else.
    #[must_use]
    pub fn conclusion(mut self, text: impl Into<String>) -> Self {
        self.conclusion.push(text.into());
        self
    }

    /// The same report with a section; one without content is left out.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        if !section.is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// The same report with a line in its footer, e.g. what is needed to repeat it.
    #[must_use]
    pub fn footer(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.footer.push((name.into(), value.into()));
        self
    }

    /// The same report with a mark, by which it is known as ours.
    #[must_use]
    pub fn marked(mut self, mark: ReportMark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// The whole page. Equal reports give equal bytes.
    pub fn to_html(&self) -> String {
        let mut figures = Vec::new();
        let sections = self.sections.iter().map(|section| ShownSection::of(section, &mut figures)).collect();
        let data = (!figures.is_empty())
            .then(|| escape::script_json(&serde_json::Value::Array(figures).to_string()));
        let mut html = Page { report: self, sections, data }
            .render()
            .expect("the template calls nothing that fails, and writes to memory");
        html.push('\n');
        html
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    sections: Vec<ShownSection<'a>>,
    /// The plots for the script, as JSON; `None` without plots.
    data: Option<String>,
}

struct ShownSection<'a> {
    heading: &'a str,
    two_columns: bool,
    items: Vec<Shown<'a>>,
}

/// An item of a section; plots with the number that each has on the page.
enum Shown<'a> {
    Paragraph(&'a str),
    Code(&'a str),
    Table(&'a Table),
    Explained(&'a Table),
    FoldedTable(&'a str, &'a Table),
    Plot(NumberedPlot<'a>),
    FoldedPlots(&'a str, Vec<NumberedPlot<'a>>),
}

#[derive(Clone, Copy)]
struct NumberedPlot<'a> {
    number: usize,
    plot: &'a Plot,
}

impl<'a> ShownSection<'a> {
    /// Appends the section's plots to `figures`.
    fn of(section: &'a Section, figures: &mut Vec<serde_json::Value>) -> Self {
        let mut numbered = |plot: &'a Plot| {
            figures.push(plot::figure(plot));
            NumberedPlot { number: figures.len() - 1, plot }
        };
        let items = section.items.iter().map(|item| match item {
            ReportItem::Paragraph(text) => Shown::Paragraph(text),
            ReportItem::Code(lines) => Shown::Code(lines),
            ReportItem::Table(table) => Shown::Table(table),
            ReportItem::Explained(table) => Shown::Explained(table),
            ReportItem::FoldedTable(line, table) => Shown::FoldedTable(line, table),
            ReportItem::Plot(plot) => Shown::Plot(numbered(plot)),
            ReportItem::FoldedPlots(line, plots) => {
                Shown::FoldedPlots(line, plots.iter().map(&mut numbered).collect())
            }
        });
        let items = items.collect();
        let is_wide = |item: &ReportItem| matches!(item, ReportItem::Plot(plot) if plot.is_wide());
        let two_columns = section.two_columns && !section.items.iter().any(is_wide);
        Self { heading: &section.heading, two_columns, items }
    }
}
