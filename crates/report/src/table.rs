//! Tables: one structure, drawn as text for a terminal and as HTML for a report.

use askama::Template;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, TableComponent, Width, presets::NOTHING,
};
use textwrap::core::display_width;

use crate::{
    escape,
    format::NOT_APPLICABLE,
    table_column::{Align, TableColumn},
};

/// What a cell means, shown by a colour in HTML; the words in the cell must say it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// No particular meaning.
    Neutral,
    /// As hoped.
    Good,
    /// In part.
    Warning,
    /// Not as hoped.
    Bad,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Plain text; escaped where it is drawn.
    pub text: String,
    /// Its meaning.
    pub tone: Tone,
}

impl Cell {
    /// A cell with a meaning.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::toned(text, Tone::Neutral)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::toned(text, Tone::Neutral)
    }
}

/// One row, with an optional remark that is shown below it (in text: below the table).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// One cell per column; missing cells are drawn empty, surplus ones not at all.
    pub cells: Vec<Cell>,
    /// The remark.
    pub detail: Option<String>,
    /// A heading above this row and those that follow it.
    pub heading: Option<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// One line above the table.
    pub caption: Option<String>,
    /// On a narrow page each row becomes a list of titles and values: for tables of sentences, which scroll badly.
    pub reflows: bool,
}

impl Table {
    /// An empty table with these columns.
    pub fn new<C: Into<TableColumn>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The same table with a caption.
    #[must_use]
    pub fn captioned(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        self.rows.push(Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() });
        self
    }

    /// Adds a row with a remark below it.
    pub fn row_with_detail<C: Into<Cell>>(
        &mut self,
        cells: impl IntoIterator<Item = C>,
        detail: impl Into<String>,
    ) -> &mut Self {
        self.row(cells);
        let detail = detail.into();
        if let Some(row) = self.rows.last_mut().filter(|_| !detail.is_empty()) {
            row.detail = Some(detail);
        }
        self
    }

    /// Splits off the columns for which there is no room in `width` columns of a terminal, and returns their titles: first those that
    /// say nothing, then those of the highest rank.
    pub fn drop_columns(&mut self, width: u16) -> Vec<String> {
        let mut dropped = Vec::new();
        while self.least_width() > usize::from(width) {
            let ranks = self.columns.iter().enumerate().filter(|(_, column)| column.rank > 0);
            let ranks = ranks.map(|(index, column)| (self.says_nothing(index), column.rank, index));
            let Some((_, _, last)) = ranks.max() else { break };
            dropped.push(self.columns.remove(last).title);
            for row in self.rows.iter_mut().filter(|row| row.cells.len() > last) {
                row.cells.remove(last);
            }
        }
        dropped
    }

    /// Whether no row has a value in this column.
    fn says_nothing(&self, index: usize) -> bool {
        self.rows.iter().all(|row| [NOT_APPLICABLE, ""].contains(&&*text_of(row, index)))
    }

    /// Columns of a terminal that the table needs when all that can be wrapped is.
    fn least_width(&self) -> usize {
        let widths = (0..self.columns.len()).map(|index| {
            let wraps_at = self.columns[index].wraps_at.map_or(usize::MAX, usize::from);
            self.content_width(index).min(wraps_at)
        });
        widths.sum::<usize>() + 2 * self.columns.len().saturating_sub(1)
    }

    /// The width of the widest cell of a column, title included; of the first column, headings too.
    fn content_width(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| display_width(&text_of(row, index)));
        let headings = self.rows.iter().filter_map(|row| row.heading.as_ref()).filter(|_| index == 0);
        let headings = headings.map(|heading| display_width(&escape::terminal(heading)));
        let title = display_width(&escape::terminal(&self.columns[index].title));
        cells.chain(headings).chain([title]).max().unwrap_or(0)
    }

    /// The table as aligned text, each column as wide as its widest cell; ends with a line feed.
    pub fn to_text(&self) -> String {
        self.draw(None)
    }

    /// The table as aligned text of at most `width` columns where words can be wrapped to fit.
    pub fn to_text_within(&self, width: u16) -> String {
        self.draw(Some(width))
    }

    fn draw(&self, width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING);
        table.set_style(TableComponent::HeaderLines, '─');
        table.set_style(TableComponent::MiddleHeaderIntersections, '─');
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table.set_header(self.columns.iter().map(|column| escape::terminal(&column.title)));
        for (index, row) in self.rows.iter().enumerate() {
            if let Some(heading) = &row.heading {
                if index > 0 {
                    table.add_row([""]);
                }
                table.add_row([escape::terminal(heading)]);
            }
            table.add_row((0..self.columns.len()).map(|column| text_of(row, column)));
        }
        let wraps = self.columns.iter().any(|column| column.wraps_at.is_some());
        for (drawn, column) in table.column_iter_mut().zip(&self.columns) {
            let padding = u16::from(drawn.index > 0);
            drawn.set_padding((padding, 0));
            if column.align == Align::Right {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            match column.wraps_at {
                Some(least) => {
                    let least = Width::Fixed(least + padding);
                    drawn.set_constraint(ColumnConstraint::LowerBoundary(least));
                }
                // Where some columns wrap, numbers need not.
                None if wraps => {
                    drawn.set_constraint(ColumnConstraint::ContentWidth);
                }
                None => {}
            }
        }
        let mut out = String::new();
        if let Some(caption) = &self.caption {
            out.push_str(&escape::terminal(caption));
            out.push('\n');
        }
        out.push_str(&table.trim_fmt());
        out.push('\n');
        for (names, detail) in self.details() {
            let text = format!("{}: {}", names.join(", "), escape::terminal(detail));
            let options =
                textwrap::Options::new(width.map_or(usize::MAX, usize::from)).subsequent_indent("    ");
            out.push('\n');
            out.push_str(&textwrap::fill(&text, options));
        }
        if self.rows.iter().any(|row| row.detail.is_some()) {
            out.push('\n');
        }
        out
    }

    /// The details, each with the first cells of the rows that have it.
    fn details(&self) -> Vec<(Vec<String>, &str)> {
        let mut details: Vec<(Vec<String>, &str)> = Vec::new();
        for row in &self.rows {
            let Some(detail) = &row.detail else { continue };
            match details.iter_mut().find(|(_, known)| known == detail) {
                Some((names, _)) => names.push(text_of(row, 0)),
                None => details.push((vec![text_of(row, 0)], detail)),
            }
        }
        details
    }

    /// The table as an HTML element; every text is escaped.
    pub fn to_html(&self) -> String {
        format!("{}\n", self.html())
    }

    /// What [`Table::to_html`] gives, without the line feed at its end.
    pub(crate) fn html(&self) -> impl std::fmt::Display {
        TableHtml { table: self }
    }

    /// The columns, each behind its class attribute.
    fn titles(&self) -> impl Iterator<Item = (String, &TableColumn)> {
        self.columns.iter().map(|column| (class(column.align, Tone::Neutral), column))
    }

    /// A row's cells, one per column: class attribute, title of the column, text.
    fn cells<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (String, &'a str, &'a str)> {
        self.columns.iter().enumerate().map(move |(index, column)| {
            let cell = row.cells.get(index);
            let (text, tone) = cell.map_or(("", Tone::Neutral), |cell| (cell.text.as_str(), cell.tone));
            (class(column.align, tone), column.title.as_str(), text)
        })
    }
}

/// The class attribute of a cell, behind a space; empty for a cell of no class.
fn class(align: Align, tone: Tone) -> String {
    let mut classes = Vec::new();
    if align == Align::Right {
        classes.push("number");
    }
    match tone {
        Tone::Neutral => {}
        Tone::Good => classes.push("good"),
        Tone::Warning => classes.push("warning"),
        Tone::Bad => classes.push("bad"),
    }
    if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) }
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableHtml<'a> {
    table: &'a Table,
}

fn text_of(row: &Row, column: usize) -> String {
    row.cells.get(column).map(|cell| escape::terminal(&cell.text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table =
            Table::new([("policy", Align::Left), ("req/s", Align::Right)]).captioned("Two policies");
        table.row(["wrr", "970"]);
        table.row_with_detail([Cell::from("lard_r"), Cell::toned("3,847", Tone::Good)], "Best of two.");
        table
    }

    #[test]
    fn a_detail_of_several_rows_is_told_once() {
        let mut table = sample();
        table.row_with_detail([Cell::from("lard"), Cell::from("1")], "Another.");
        table.row_with_detail([Cell::from("wrr"), Cell::from("2")], "Best of two.");
        let text = table.to_text();
        assert!(text.ends_with("\nlard_r, wrr: Best of two.\nlard: Another.\n"), "{text}");
    }

    #[test]
    fn text_is_aligned_and_has_details_below() {
        assert_eq!(
            sample().to_text(),
            "Two policies\npolicy  req/s\n─────────────\nwrr       970\nlard_r  3,847\n\nlard_r: Best of two.\n"
        );
    }

    #[test]
    fn text_within_a_width_wraps_words() {
        let mut table = Table::new([("claim", Align::Left), ("ours", Align::Right)]);
        table.row(["LARD/R serves several times as many requests as WRR", "3.9"]);
        let text = table.to_text_within(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.lines().count() > 3, "{text}");
    }

    #[test]
    fn only_columns_of_sentences_wrap() {
        let mut table = Table::new([
            TableColumn::new("claim", Align::Left).wraps_at(20),
            TableColumn::new("ours", Align::Right),
        ]);
        table.row(["LARD/R serves several times as many requests as WRR", "3.6 … 4.4"]);
        let text = table.to_text_within(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("3.6 … 4.4"), "{text}");
    }

    #[test]
    fn columns_without_room_are_left_out_by_rank() {
        let column = |title: &str, rank| TableColumn::new(title, Align::Right).rank(rank);
        let mut table =
            Table::new([column("policy", 0), column("p50", 2), column("p99", 1), column("CPU%", 2)]);
        table.row(["lard_r", "1 ms", "2 ms", "99"]);
        assert_eq!(table.drop_columns(24), [""; 0]);
        // Of equal ranks the last one goes first.
        assert_eq!(table.clone().drop_columns(23), ["CPU%"]);
        assert_eq!(table.drop_columns(1), ["CPU%", "p50", "p99"]);
        assert_eq!(table.to_text(), "policy\n──────\nlard_r\n");
        let mut table =
            Table::new([column("policy", 0), column("miss%", 1), column("p50", 2), column("disk%", 1)]);
        table.row(["lard_r", "-", "1 ms", "-"]).row(["jsq", "-", "2 ms", "-"]);
        assert_eq!(table.drop_columns(1), ["disk%", "miss%", "p50"], "what says nothing goes first");
    }

    #[test]
    fn headings_stand_above_their_rows() {
        let mut table = Table::new([("policy", Align::Left), ("req/s", Align::Right)]);
        for (heading, rate) in [("2 back-ends", "970"), ("4 back-ends", "1,940")] {
            table.row(["wrr", rate]);
            table.rows.last_mut().unwrap().heading = Some(heading.to_owned());
        }
        assert_eq!(
            table.to_text(),
            "policy       req/s\n──────────────────\n2 back-ends\nwrr            970\n\n4 back-ends\nwrr          1,940\n"
        );
        assert!(table.to_html().contains("<th scope=\"rowgroup\" colspan=\"2\">4 back-ends</th>"));
        // A heading can be the widest of its column.
        table.columns[1].rank = 1;
        assert_eq!(table.clone().drop_columns(18), [""; 0]);
        assert_eq!(table.drop_columns(17), ["req/s"]);
    }

    #[test]
    fn titles_have_their_meaning() {
        let table = Table::new([TableColumn::new("miss%", Align::Right).meaning("disk \"reads\"")]);
        assert!(table.to_html().contains("<abbr title=\"disk &quot;reads&quot;\">miss%</abbr>"));
    }

    #[test]
    fn html_is_escaped_and_classed() {
        let mut table = Table::new([("<b>", Align::Right)]);
        table.row_with_detail([Cell::toned("</td><script>", Tone::Bad)], "a & b");
        let html = table.to_html();
        assert!(html.contains("&lt;b&gt;") && html.contains("a &amp; b"), "{html}");
        assert!(html.contains("<td class=\"number bad\">&lt;/td&gt;&lt;script&gt;</td>"), "{html}");
    }

    #[test]
    fn short_and_long_rows_do_no_harm() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Left)]);
        table.row(["1"]).row(["1", "2", "3"]);
        assert!(!table.to_text().contains('3'));
        assert!(!table.to_html().contains('3'));
    }
}
