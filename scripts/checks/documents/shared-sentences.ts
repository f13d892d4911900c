import { posix } from 'node:path';

/**
 * Sentences that several documents have. A document includes one between `<!-- include NAME -->` and `<!-- end -->`; links lead from
 * the root of the repository. An empty sentence leaves the markers.
 */
export const SHARED_SENTENCES: Readonly<Record<string, string>> = {};

/** Stands below each command that installs the packages, until they are published. */
const UNPUBLISHED = 'Until 0.1.0 npm answers 404: [install from a checkout](README.md#install).';

const INCLUDED = /(<!-- include (\S+) -->)[^]*?(<!-- end -->)/g;
const INSTALLATION =
  /(^```sh\n(?:(?!```).*\n)*npm i (?:-\w+ )?@locks\/(?:.*\n)*?```\n)(?:\nUntil 0\.1\.0 npm .*\n)?/gm;

/** The document with the present text of what it includes. `file` is its path in the repository. */
export function withSharedSentences(
  document: string,
  file: string,
  {
    sentences = SHARED_SENTENCES,
    isPublished,
  }: { sentences?: typeof SHARED_SENTENCES; isPublished: boolean },
): string {
  const note = isPublished || file === 'README.md' ? '' : `\n${linkedFrom(file, UNPUBLISHED)}\n`;
  return document
    .replace(INCLUDED, (_, start: string, name: string, end: string) => {
      const sentence = sentences[name];
      if (sentence === undefined) throw new Error(`${file} includes "${name}", which is no shared sentence`);
      return `${start}${linkedFrom(file, sentence)}${end}`;
    })
    .replace(INSTALLATION, (_, block: string) => block + note);
}

/** The README of a package names the document: its tarball has none to link to. */
export function linkedFrom(file: string, sentence: string): string {
  return sentence.replaceAll(
    /\[([^\]]*)\]\(([^)#]*)(#[^)]*)?\)/g,
    (_, text: string, target: string, anchor = '') => {
      if (file.startsWith('packages/')) return `${text} (\`${target}\` in the repository)`;
      return `[${text}](${target === file ? '' : posix.relative(posix.dirname(file), target)}${anchor})`;
    },
  );
}
