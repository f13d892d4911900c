import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { routeOf } from './documents.ts';
import { root } from './repository.ts';

/** Files that a package is packed with; the repository has them elsewhere. */
const PACKED_COPIES: Readonly<Record<string, string>> = { 'packages/core/dist/spec.md': 'docs/spec.md' };

/** What the links of the documents lead to. */
export class LinkTargets {
  readonly #documents: ReadonlySet<string>;
  /** Files that are no documents and that a document links to: each becomes a page that shows it. */
  readonly sources = new Set<string>();
  /** Pictures that a document shows: the site has them under the same path. */
  readonly pictures = new Set<string>();
  /** Links that lead nowhere, with the document they stand in. */
  readonly problems: string[] = [];

  constructor(documentFiles: Iterable<string>) {
    this.#documents = new Set(documentFiles);
  }

  /** The text of a document with its links to files replaced by links to pages. */
  rewrite(file: string, text: string): string {
    let inCode = false;
    return text
      .split('\n')
      .map((line) => {
        if (/^\s*(```|~~~)/.test(line)) inCode = !inCode;
        return inCode ? line : this.#rewriteLine(file, line);
      })
      .join('\n');
  }

  #rewriteLine(file: string, line: string): string {
    return line.replaceAll(/\]\(([^)\s]+)\)/g, (whole, target: string) => {
      if (/^([a-z]+:|#)/.test(target)) return whole;
      const [path = '', anchor] = target.split('#');
      const linked = posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, '');
      const page = this.#pageOf(PACKED_COPIES[linked] ?? linked);
      if (page === undefined) {
        this.problems.push(`${file}: ${target} is no file of the repository`);
        return whole;
      }
      return `](/${page}${anchor === undefined ? '' : `#${anchor}`})`;
    });
  }

  #pageOf(path: string): string | undefined {
    const document = [path, `${path}/README.md`].find((candidate) => this.#documents.has(candidate));
    if (document !== undefined) return routeOf(document);
    if (!existsSync(join(root, path))) return undefined;
    if (/\.(png|svg)$/.test(path)) {
      this.pictures.add(path);
      return path;
    }
    this.sources.add(path);
    return sourceRoute(path);
  }
}

/** A page that shows a file, or lists a folder, of the repository. */
export function sourceRoute(path: string): string {
  return `source/${path.replaceAll('.', '-').toLowerCase()}`;
}

/** The files of a folder that a document links to. */
export function filesOf(path: string): string[] | undefined {
  const absolute = join(root, path);
  if (!statSync(absolute).isDirectory()) return undefined;
  return readdirSync(absolute, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `${path}/${name}`)
    .sort();
}
