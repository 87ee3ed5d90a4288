//! Self-contained HTML reports: one file, no network request, readable without JavaScript.

use std::fmt::Write as _;

use crate::{
    escape,
    plot::{self, Plot},
    table::Table,
};

const STYLE: &str = include_str!("assets/report.css");
const SCRIPT: &str = include_str!("assets/report.js");

/// plotly.js from the `plotly` package, unmodified, gzip and base64; made by the build script.
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz.base64"));

/// The page's content security policy: nothing may be fetched, whatever the scripts try.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:";

#[derive(Debug, Clone, PartialEq)]
enum ReportItem {
    Paragraph(String),
    Table(Table),
    Folded(String, Table),
    Plot(Plot),
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

    /// The same section with a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.items.push(ReportItem::Table(table));
        self
    }

    /// The same section with a table folded behind a line that the reader opens.
    #[must_use]
    pub fn folded_table(mut self, line: impl Into<String>, table: Table) -> Self {
        self.items.push(ReportItem::Folded(line.into(), table));
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

    /// The whole page. Equal reports give equal bytes.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        let mut figures = Vec::new();
        for section in &self.sections {
            section_html(section, &mut figures, &mut body);
        }
        let mut out = String::with_capacity(LIBRARY.len() + body.len() + 65_536);
        self.head(&mut out);
        out.push_str(&body);
        if !self.footer.is_empty() {
            out.push_str("<footer>\n<h2>To repeat this</h2>\n");
            definitions(&self.footer, &mut out);
            out.push_str("</footer>\n");
        }
        out.push_str("</main>\n");
        if !figures.is_empty() {
            let data = escape::script_json(&serde_json::Value::Array(figures).to_string());
            let _ = write!(
                out,
                "<script type=\"application/json\" id=\"plot-data\">{data}</script>\n\
                 <script type=\"text/plain\" id=\"plot-library\">{LIBRARY}</script>\n\
                 <script>\n{SCRIPT}</script>\n"
            );
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    fn head(&self, out: &mut String) {
        let title = escape::html(&self.title);
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<header>\n<h1>{title}</h1>\n"
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"subtitle\">{}</p>", escape::html(&self.subtitle));
        }
        definitions(&self.facts, out);
        out.push_str("</header>\n");
        for warning in &self.warnings {
            let _ =
                writeln!(out, "<p class=\"notice\" role=\"note\"><b>Note:</b> {}</p>", escape::html(warning));
        }
        if !self.conclusion.is_empty() {
            out.push_str("<div class=\"conclusion\">\n");
            for sentence in &self.conclusion {
                let _ = writeln!(out, "<p>{}</p>", escape::html(sentence));
            }
            out.push_str("</div>\n");
        }
        out.push_str(
            "<noscript><p class=\"hint\">JavaScript is off: the plots below are static drawings.</p></noscript>\n",
        );
    }
}

fn definitions(pairs: &[(String, String)], out: &mut String) {
    if pairs.is_empty() {
        return;
    }
    out.push_str("<dl>\n");
    for (name, value) in pairs {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape::html(name), escape::html(value));
    }
    out.push_str("</dl>\n");
}

fn section_html(section: &Section, figures: &mut Vec<serde_json::Value>, out: &mut String) {
    let class = if section.two_columns { " class=\"two\"" } else { "" };
    let _ = writeln!(out, "<section{class}>\n<h2>{}</h2>", escape::html(&section.heading));
    for item in &section.items {
        match item {
            ReportItem::Paragraph(text) => {
                let _ = writeln!(out, "<p class=\"text\">{}</p>", escape::html(text));
            }
            ReportItem::Table(table) => out.push_str(&table.to_html()),
            ReportItem::Folded(line, table) => {
                let line = escape::html(line);
                let _ = writeln!(out, "<details><summary>{line}</summary>\n{}</details>", table.to_html());
            }
            ReportItem::Plot(plot) => plot_html(plot, figures, out),
        }
    }
    out.push_str("</section>\n");
}

/// The page contains the static drawing; the interactive one replaces it only once it is rendered.
fn plot_html(plot: &Plot, figures: &mut Vec<serde_json::Value>, out: &mut String) {
    let number = figures.len();
    let _ = write!(
        out,
        "<figure>\n<figcaption id=\"title-{number}\">{}</figcaption>\n\
         <div class=\"static\" id=\"static-{number}\">{}</div>\n\
         <div class=\"live\" id=\"live-{number}\" aria-labelledby=\"title-{number}\"></div>\n",
        escape::html(&plot.title),
        plot.to_svg(),
    );
    if !plot.note.is_empty() {
        let _ = writeln!(out, "<p class=\"remark\">{}</p>", escape::html(&plot.note));
    }
    out.push_str("</figure>\n");
    figures.push(plot::figure(plot));
}
