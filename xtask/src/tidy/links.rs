//! Relative links in Markdown documents lead somewhere, anchors included.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Violation;
use super::tree::Tree;
use super::words::line_of;

const RULE: &str = "links";

/// Checks the links and images of all Markdown documents.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let documents: BTreeMap<&str, &str> = tree.texts().filter(|(path, _)| path.ends_with(".md")).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|(&path, text)| (path, anchors(text))).collect();
    for (&path, text) in &documents {
        for (offset, link) in links(text) {
            let Err(remedy) = follow(tree, &anchors, path, &link) else {
                continue;
            };
            violations.push(Violation::new(path, line_of(text, offset), RULE, format!("`{link}`: {remedy}")));
        }
    }
    violations
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

/// The links that do not name a scheme, with the offsets at which they stand.
fn links(text: &str) -> Vec<(usize, String)> {
    let links = parser(text).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let external = dest_url.starts_with("//") || has_scheme(&dest_url);
            (!external).then(|| (range.start, dest_url.into_string()))
        }
        _ => None,
    });
    links.collect()
}

/// Whether the link opens with a scheme such as `https:` (RFC 3986, section 3.1).
fn has_scheme(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// What headings of the document can be linked to, named as GitHub and GitLab name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(title) = &mut heading {
                    title.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let numbered = (1..).map(|n| format!("{slug}-{n}"));
                let free = std::iter::once(slug.clone()).chain(numbered).find(|s| !anchors.contains(s));
                anchors.extend(free);
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let ids = html.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
                anchors.extend(ids.map(|(id, _)| id.to_owned()));
            }
            _ => {}
        }
    }
    anchors
}

fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Follows a link that stands in the document at `path`.
///
/// # Errors
/// What is wrong with it and what to do.
fn follow(
    tree: &Tree,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    path: &str,
    link: &str,
) -> Result<(), &'static str> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => path.to_owned(),
        _ => resolve(path, file).ok_or("leads out of the repository; name what is meant in words")?,
    };
    if !tree.exists(&target) {
        return Err("there is no such file; correct the path");
    }
    match anchors.get(target.as_str()) {
        Some(known) if !anchor.is_empty() && !known.contains(anchor) => {
            Err("the document has no such heading; correct what follows the #")
        }
        _ => Ok(()),
    }
}

/// The path from the root that `link` means in the document at `path`; `None` where it leaves the root.
fn resolve(path: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        let other = "# Two words, `code` & more\n# Twice\n# Twice\n<a id=\"mark\"></a>\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", other), ("src/lib.rs", "")]);
        check(&tree).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        assert_eq!(lines("[x](b.md) [y](../src/lib.rs) [z](../src) [r](/docs/b.md) [s](..)"), NONE);
        assert_eq!(
            lines("[x](https://example.org/y) [m](mailto:a@b.c) `[x](none.md)`\n\n    [x](none.md)\n"),
            NONE
        );
        assert_eq!(
            lines("[x](b.md#two-words-code--more) [y](b.md#twice-1) [z](b.md#mark) [l](../src/lib.rs#L3)"),
            NONE
        );
        assert_eq!(lines("# Here\n[x](#here)\n"), NONE);
    }

    #[test]
    fn links_that_lead_nowhere_are_reported() {
        assert_eq!(lines("text\n\n[x](c.md) [y](../b.md)\n![z](z.png)\n"), [3, 3, 4]);
        assert_eq!(lines("[x](../../outside)\n"), [1]);
        assert_eq!(lines("[x]\n\n[x]: none.md\n"), [1]);
    }

    #[test]
    fn anchors_that_lead_nowhere_are_reported() {
        assert_eq!(lines("[x](b.md#twice-2)\n[y](#here)\n[z](b.md#Twice)"), [1, 2, 3]);
    }
}
