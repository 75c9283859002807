//! The logs that a command line names: files, patterns of files, standard input; each plain or gzip.

use crate::error::{CliError, Result};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::BufRead;
use std::path::PathBuf;
use tollgate_replay::decompressed;

/// One log.
pub(super) enum Input {
    /// Standard input.
    Piped,
    /// A file.
    File(PathBuf),
}

impl Input {
    /// How it is called in a report.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Piped => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Its bytes, decompressed; `bar` is told of those that are read.
    pub(super) fn open(&self, bar: &ProgressBar) -> Result<Box<dyn BufRead>> {
        let log = match self {
            Self::Piped => decompressed(bar.wrap_read(std::io::stdin())),
            Self::File(path) => {
                let failed = |source| CliError::Read { path: path.clone(), source };
                decompressed(bar.wrap_read(File::open(path).map_err(failed)?))
            }
        };
        log.map_err(|source| CliError::Read { path: self.name().into(), source })
    }

    /// The bytes that there are to read, if that is known before.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Piped => None,
            Self::File(path) => std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|of| of.len()),
        }
    }
}

/// The logs, in the order given; those of a pattern sorted by their names. A pattern is expanded here, too, for shells that do
/// not, and an argument is one only if there is no file of that name.
pub(super) fn named(arguments: &[String]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        if argument == "-" {
            if inputs.iter().any(|input| matches!(input, Input::Piped)) {
                return Err(CliError::Input("standard input (`-`) can be read once only".to_owned()));
            }
            inputs.push(Input::Piped);
        } else if argument.contains(['*', '?', '[']) && !PathBuf::from(argument).exists() {
            inputs.extend(matching(argument)?);
        } else {
            let path = PathBuf::from(argument);
            if path.is_dir() {
                let help = format!("name its files, for instance '{}'", path.join("*.gz").display());
                return Err(CliError::Input(format!("{argument} is a folder; {help}")));
            }
            inputs.push(Input::File(path));
        }
    }
    Ok(inputs)
}

fn matching(pattern: &str) -> Result<Vec<Input>> {
    let bad = |why: &dyn std::fmt::Display| CliError::Input(format!("{pattern}: {why}"));
    let mut files = Vec::new();
    for path in glob::glob(pattern).map_err(|e| bad(&e))? {
        let path = path.map_err(|e| bad(&e))?;
        if path.is_file() {
            files.push(Input::File(path));
        }
    }
    if files.is_empty() {
        return Err(bad(&"no file is called like that"));
    }
    Ok(files)
}
