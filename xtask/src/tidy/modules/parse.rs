//! What one file declares, imports and uses, as far as its tokens tell.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// Words before the name of an item.
const ITEMS: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

/// One module as its file has it.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Paths of `use`, by the name that they get.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    pub(super) globs: Vec<Vec<String>>,
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Vec<String>>,
    /// Child modules in files of their own.
    pub(super) declared: Vec<String>,
    pub(super) inline: Vec<(String, Parsed)>,
}

/// Parses a file; the error is the tokenizer's.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
    let mut parsed = Parsed::default();
    let mut words = BTreeSet::new();
    parsed.walk(&trees(tokens), &mut words);
    parsed.use_words(words);
    Ok(parsed)
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

impl Parsed {
    /// Takes in tokens; `words` gets every name that stands alone or begins a path.
    fn walk(&mut self, tokens: &[TokenTree], words: &mut BTreeSet<String>) {
        let mut at = 0;
        let mut public = false;
        while let Some(token) = tokens.get(at) {
            let was_public = std::mem::take(&mut public);
            match token {
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    let (next, test) = attribute(tokens, at);
                    at = if test { item_end(tokens, next) } else { next };
                }
                TokenTree::Ident(word) if *word == "pub" => {
                    public = true;
                    at += 1;
                    if let Some(TokenTree::Group(g)) = tokens.get(at)
                        && g.delimiter() == Delimiter::Parenthesis
                    {
                        at += 1;
                    }
                }
                TokenTree::Ident(word) if *word == "use" && !is_punct(tokens.get(at + 1), '<') => {
                    let end = item_end(tokens, at);
                    self.import(&tokens[at + 1..end], &mut Vec::new(), was_public);
                    at = end;
                }
                TokenTree::Ident(word) if *word == "mod" => at = self.module(tokens, at + 1),
                TokenTree::Ident(word) => {
                    let is_item = ITEMS.iter().any(|item| word == item);
                    at = if is_item { self.item(tokens, at + 1) } else { self.path(tokens, at, word, words) };
                }
                TokenTree::Group(group) => {
                    self.walk(&trees(group.stream()), words);
                    at += 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }

    /// A module's name and what follows; where to go on.
    fn module(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let Some(TokenTree::Ident(name)) = tokens.get(at) else { return at };
        match tokens.get(at + 1) {
            Some(TokenTree::Group(body)) => {
                let (mut inline, mut words) = (Self::default(), BTreeSet::new());
                inline.walk(&trees(body.stream()), &mut words);
                inline.use_words(words);
                self.inline.push((name.to_string(), inline));
            }
            _ => self.declared.push(name.to_string()),
        }
        at + 2
    }

    /// The name of an item; where to go on.
    fn item(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let at = if is_punct(tokens.get(at), '!') { at + 1 } else { at };
        match tokens.get(at) {
            // `const fn` and the like: another word of the kind follows.
            Some(TokenTree::Ident(name)) if !ITEMS.iter().any(|item| name == item) => {
                self.items.insert(name.to_string());
                at + 1
            }
            _ => at,
        }
    }

    /// A path, or a single name; where to go on.
    fn path(
        &mut self,
        tokens: &[TokenTree],
        start: usize,
        word: &Ident,
        words: &mut BTreeSet<String>,
    ) -> usize {
        let mut path = vec![word.to_string()];
        let mut at = start + 1;
        while is_punct(tokens.get(at), ':')
            && is_punct(tokens.get(at + 1), ':')
            && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
        {
            path.push(next.to_string());
            at += 3;
        }
        // A field, a method, or what follows `::` in another crate.
        let before = start.checked_sub(1).map(|before| &tokens[before]);
        let continued = is_punct(before, '.') || is_punct(before, ':') && is_colons(tokens, start);
        if continued {
            return at;
        }
        if path.len() == 1 {
            words.extend(path);
        } else {
            self.uses.push(path);
        }
        at
    }

    /// The tree of a `use`, after `prefix`.
    fn import(&mut self, tokens: &[TokenTree], prefix: &mut Vec<String>, public: bool) {
        let depth = prefix.len();
        let mut renamed = None;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Ident(word) if *word == "as" => {
                    renamed = tokens.get(at + 1).map(ToString::to_string);
                    at += 1;
                }
                TokenTree::Ident(word) => prefix.push(word.to_string()),
                TokenTree::Group(group) => {
                    for piece in pieces(group) {
                        self.import(&piece, prefix, public);
                    }
                    prefix.truncate(depth);
                    return;
                }
                TokenTree::Punct(p) if p.as_char() == '*' => {
                    self.globs.push(prefix.clone());
                    if !public {
                        self.uses.push(prefix.clone());
                    }
                    prefix.truncate(depth);
                    return;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
        // `use a::{self}` is `use a`.
        let mut path = prefix.clone();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = renamed.or_else(|| path.last().cloned()) {
            if !public {
                self.uses.push(path.clone());
            }
            // A name for itself, as in `use cache;` of another crate, leads nowhere.
            if path.len() > 1 || path.first() != Some(&name) {
                self.imports.insert(name, path);
            }
        }
        prefix.truncate(depth);
    }

    /// Adds to what is used the names that were imported, by re-exports as well.
    fn use_words(&mut self, words: BTreeSet<String>) {
        let imported = words.into_iter().filter(|word| self.imports.contains_key(word));
        let imported: Vec<Vec<String>> = imported.map(|word| vec![word]).collect();
        self.uses.extend(imported);
    }
}

/// The parts of a group between commas.
fn pieces(group: &Group) -> Vec<Vec<TokenTree>> {
    let tokens = trees(group.stream());
    tokens.split(|token| is_punct(Some(token), ',')).map(<[TokenTree]>::to_vec).collect()
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == c)
}

/// Whether `::` stands before the token at `at`.
fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_punct(tokens.get(at - 1), ':') && is_punct(tokens.get(at - 2), ':')
}

/// Where the attribute at `at` ends, and whether it keeps what follows for tests.
fn attribute(tokens: &[TokenTree], at: usize) -> (usize, bool) {
    let at = if is_punct(tokens.get(at + 1), '!') { at + 2 } else { at + 1 };
    let Some(TokenTree::Group(group)) = tokens.get(at) else { return (at, false) };
    let text: String = group.stream().to_string().split_whitespace().collect();
    (at + 1, text.starts_with("cfg(test") || text.starts_with("cfg(all(test"))
}

/// Behind the item that begins at `at`: its semicolon, or its braces.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is_punct(Some(other), ';'),
    };
    // The braces of a `use` are followed by its semicolon.
    let is_use = tokens[at..].iter().take_while(|t| !ends(t)).any(|t| t.to_string() == "use");
    let found = tokens[at..].iter().position(|t| if is_use { is_punct(Some(t), ';') } else { ends(t) });
    found.map_or(tokens.len(), |offset| at + offset + 1)
}
