//! Tables: one structure, drawn as text for a terminal and as HTML for a report.

use askama::Template;
use comfy_table::{CellAlignment, ContentArrangement, TableComponent, presets::NOTHING};

use crate::escape;

/// How the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// One cell per column; missing cells are drawn empty, surplus ones not at all.
    pub cells: Vec<Cell>,
    /// The remark.
    pub detail: Option<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Column titles.
    pub header: Vec<String>,
    /// Alignment per column; columns beyond its end are aligned left.
    pub align: Vec<Align>,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// One line above the table.
    pub caption: Option<String>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (T, Align)>) -> Self {
        let (header, align) = columns.into_iter().map(|(title, align)| (title.into(), align)).unzip();
        Self { header, align, ..Self::default() }
    }

    /// The same table with a caption.
    #[must_use]
    pub fn captioned(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        self.rows.push(Row { cells: cells.into_iter().map(Into::into).collect(), detail: None });
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
        table.set_header(self.header.iter().map(|title| escape::terminal(title)));
        for row in &self.rows {
            table.add_row((0..self.header.len()).map(|column| text_of(row, column)));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((u16::from(index > 0), 0));
            if self.align.get(index) == Some(&Align::Right) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut out = String::new();
        if let Some(caption) = &self.caption {
            out.push_str(&escape::terminal(caption));
            out.push('\n');
        }
        out.push_str(&table.trim_fmt());
        out.push('\n');
        for row in &self.rows {
            if let Some(detail) = &row.detail {
                let text = format!("{}: {}", text_of(row, 0), escape::terminal(detail));
                let options =
                    textwrap::Options::new(width.map_or(usize::MAX, usize::from)).subsequent_indent("    ");
                out.push('\n');
                out.push_str(&textwrap::fill(&text, options));
            }
        }
        if self.rows.iter().any(|row| row.detail.is_some()) {
            out.push('\n');
        }
        out
    }

    /// The table as an HTML element; every text is escaped.
    pub fn to_html(&self) -> String {
        format!("{}\n", self.html())
    }

    /// What [`Table::to_html`] gives, without the line feed at its end.
    pub(crate) fn html(&self) -> impl std::fmt::Display {
        TableHtml { table: self }
    }

    /// The columns' titles, each behind its class attribute.
    fn titles(&self) -> impl Iterator<Item = (String, &str)> {
        self.header
            .iter()
            .enumerate()
            .map(|(column, title)| (self.class(column, Tone::Neutral), title.as_str()))
    }

    /// A row's cells, one per column, each behind its class attribute.
    fn cells<'a>(&self, row: &'a Row) -> impl Iterator<Item = (String, &'a str)> {
        (0..self.header.len()).map(move |column| {
            let cell = row.cells.get(column);
            let (text, tone) = cell.map_or(("", Tone::Neutral), |cell| (cell.text.as_str(), cell.tone));
            (self.class(column, tone), text)
        })
    }

    fn class(&self, column: usize, tone: Tone) -> String {
        let mut classes = Vec::new();
        if self.align.get(column) == Some(&Align::Right) {
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
