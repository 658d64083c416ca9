//! Safe text, widths, styles and human units.
