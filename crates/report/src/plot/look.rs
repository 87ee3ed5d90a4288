//! How series are told apart: by colour, marker and dashes.

/// Twelve colours, each with a contrast of at least 3 to a white and to a dark page, and as far apart as they can be for readers who see
/// colours and for those who do not tell red from green. Their order sets apart policies that are often compared.
const COLORS: [(u8, u8, u8); 12] = [
    (127, 100, 101),
    (201, 43, 150),
    (83, 131, 200),
    (97, 155, 30),
    (192, 59, 59),
    (109, 81, 196),
    (162, 138, 118),
    (216, 90, 241),
    (0, 117, 32),
    (246, 100, 61),
    (150, 45, 251),
    (32, 164, 166),
];

/// The place of the first series without a look of its own: blue, before green and red.
const FIRST: usize = 2;

/// A marker. Their number has no factor in common with that of the colours, so that many pairs are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    TriangleUp,
    Square,
    Diamond,
    Cross,
    X,
    TriangleDown,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::TriangleUp,
    Marker::Square,
    Marker::Diamond,
    Marker::Cross,
    Marker::X,
    Marker::TriangleDown,
];

/// Lengths of strokes and gaps in pixels; none for a whole line.
const DASHES: [&[i32]; 4] = [&[], &[8, 4], &[2, 3], &[10, 3, 2, 3]];

/// Colour, marker and dashes of a series. A policy has the same in every plot: those of its place among all policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesLook {
    place: usize,
    variant: usize,
}

impl SeriesLook {
    /// The look of a place in an order. From the twelfth place on colours come again, with other dashes and markers.
    #[must_use]
    pub const fn of_place(place: usize) -> Self {
        Self { place, variant: 0 }
    }

    /// Another look of the same colour, e.g. for the same policy simulated instead of measured; 0 is the first one.
    #[must_use]
    pub const fn variant(self, variant: usize) -> Self {
        Self { variant, ..self }
    }

    /// The look of a series that has none of its own.
    pub(crate) const fn by_place_in_plot(index: usize) -> Self {
        Self::of_place(FIRST + index)
    }

    /// Red, green and blue.
    pub(crate) const fn color(self) -> (u8, u8, u8) {
        COLORS[self.place % COLORS.len()]
    }

    pub(crate) const fn marker(self) -> Marker {
        MARKERS[(self.place + 3 * self.variant) % MARKERS.len()]
    }

    /// Lengths of strokes and gaps; empty for a whole line.
    pub(crate) const fn dashes(self) -> &'static [i32] {
        DASHES[(self.place / COLORS.len() + self.variant) % DASHES.len()]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// WCAG's relative luminance.
    fn luminance((red, green, blue): (u8, u8, u8)) -> f64 {
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn colors_stand_out_on_both_pages() {
        let dark = luminance((0x14, 0x18, 0x1f));
        for color in COLORS {
            let own = luminance(color);
            assert!(1.05 / (own + 0.05) >= 3.0, "{color:?} on white");
            assert!((own + 0.05) / (dark + 0.05) >= 3.0, "{color:?} on dark");
        }
    }

    #[test]
    fn every_look_is_another_one() {
        let all: Vec<SeriesLook> = (0..84).map(SeriesLook::of_place).collect();
        let parts = |look: &SeriesLook| (look.color(), look.marker() as u8, look.dashes());
        assert_eq!(all.iter().map(parts).collect::<BTreeSet<_>>().len(), all.len());
        let variants = [0, 1, 2, 3].map(|variant| SeriesLook::of_place(9).variant(variant));
        assert!(variants.iter().all(|look| look.color() == variants[0].color()));
        assert_eq!(variants.iter().map(parts).collect::<BTreeSet<_>>().len(), 4);
    }
}
