//! The papers' simulation studies: scenario, published claim, measured value.
