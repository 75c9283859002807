//! The fenced blocks of a document, each with its place, its language and its marks.

use crate::harness::repository;

/// What stands between two fences.
pub struct Block {
    pub file: String,
    /// Of the opening fence, from 1.
    pub line: usize,
    /// Which second-level heading it stands under: blocks of one are read, and run, one after the other.
    pub section: usize,
    /// The first word of the info string.
    pub language: String,
    /// The other words.
    pub marks: Vec<String>,
    pub text: String,
}

impl Block {
    pub fn is(&self, mark: &str) -> bool {
        self.marks.iter().any(|m| m == mark)
    }

    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// README and the pages of the guide.
pub fn documents() -> Vec<String> {
    let pages = std::fs::read_dir(repository("crates/tollgate/guide")).unwrap();
    let mut files: Vec<_> =
        pages.map(|page| format!("crates/tollgate/guide/{}", page.unwrap().file_name().to_str().unwrap())).collect();
    files.sort();
    files.insert(0, "README.md".to_owned());
    files
}

pub fn blocks(file: &str, text: &str) -> Vec<Block> {
    let (mut found, mut section, mut open): (Vec<Block>, usize, Option<Block>) = (Vec::new(), 0, None);
    for (at, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(info), None) => {
                let mut words = info.split([' ', ',']).map(str::to_owned);
                let language = words.next().unwrap_or_default();
                let (file, line, marks) = (file.to_owned(), at + 1, words.collect());
                open = Some(Block { file, line, section, language, marks, text: String::new() });
            }
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => section += usize::from(line.starts_with("## ")),
        }
    }
    assert!(open.is_none(), "{file}: a fence is not closed");
    found
}

#[test]
fn a_block_has_its_line_its_section_its_language_and_its_marks() {
    let found = blocks("F", "a\n```sh aws\nx\n```\n## B\n\n  ```toml\n[a]\n\nb = 1\n  ```\n");
    let told: Vec<_> = found.iter().map(|b| (b.place(), b.section, b.language.as_str(), b.text.as_str())).collect();
    assert_eq!(told, [("F:2".to_owned(), 0, "sh", "x\n"), ("F:7".to_owned(), 1, "toml", "[a]\n\nb = 1\n")]);
    assert!(found[0].is("aws") && !found[1].is("aws"));
}
