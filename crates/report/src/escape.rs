//! Escaping of text that comes from traces, file names and command lines before it enters a page.

use std::fmt;

use askama::filters::Escaper;

/// How templates escape every text, as content or inside a quoted attribute (HTML standard, section 13.3 "Serializing HTML
/// fragments", with both quotes escaped).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // Control characters are not allowed in HTML text, and would be invisible anyway.
                _ if character.is_control() && character != '\n' && character != '\t' => {
                    out.write_char('\u{fffd}')?;
                }
                _ => out.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// JSON for a `<script type="application/json">` block: still the same JSON value, without any character that HTML
/// could read as markup.
pub(crate) fn script_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Text for plotly.js, which reads a few HTML tags and entities in labels: nothing is taken as markup.
pub(crate) fn plotly_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text for a terminal: control characters become visible escapes, so that a target name cannot steer the terminal.
pub(crate) fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_has_no_markup_left() {
        let html = |text| {
            let mut out = String::new();
            Html.write_escaped_str(&mut out, text).unwrap();
            out
        };
        assert_eq!(html("</script><b a='\"'>&"), "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(html("a\u{0}b\u{1b}[2J"), "a\u{fffd}b\u{fffd}[2J");
    }

    #[test]
    fn script_json_is_the_same_value() {
        let value = serde_json::json!({ "name": "</script><!-- & \u{2028}" });
        let escaped = script_json(&value.to_string());
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn terminal_text_has_no_control_characters() {
        assert_eq!(terminal("a\u{1b}[31m\tb"), "a\\u{1b}[31m\\tb");
    }
}
