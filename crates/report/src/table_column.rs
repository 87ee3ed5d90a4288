//! The columns of tables.

/// How the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Its title.
    pub title: String,
    /// How its cells are aligned.
    pub align: Align,
    /// What its values mean, with their unit, for a reader who points at the title; may be empty.
    pub meaning: String,
    /// The least width to which text of its cells is wrapped; `None` for cells that stay on one line.
    pub wraps_at: Option<u16>,
    /// Where there is no room for all columns, those of the highest rank are left out first, and those of rank 0 never.
    pub rank: u8,
}

impl TableColumn {
    /// A column that is always shown.
    pub fn new(title: impl Into<String>, align: Align) -> Self {
        Self { title: title.into(), align, meaning: String::new(), wraps_at: None, rank: 0 }
    }

    /// The same column with the meaning of its values.
    #[must_use]
    pub fn meaning(mut self, meaning: impl Into<String>) -> Self {
        self.meaning = meaning.into();
        self
    }

    /// The same column with cells that may be wrapped to this width.
    #[must_use]
    pub fn wraps_at(mut self, width: u16) -> Self {
        self.wraps_at = Some(width);
        self
    }

    /// The same column with this rank.
    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

impl<T: Into<String>> From<(T, Align)> for TableColumn {
    fn from((title, align): (T, Align)) -> Self {
        Self::new(title, align)
    }
}
