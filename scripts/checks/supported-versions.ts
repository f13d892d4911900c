/** What docs/support.md says of one product: a server, runtime, client or tool. */
export interface Supported {
  /** The column `needs`. */
  readonly needs: string;
  /** The first version of the next column: `oldest tried` of servers, `tried` of all others. */
  readonly oldestTried: string;
  /** Every version of its row, and of the table of features. */
  readonly versions: Set<string>;
  /** The versions that a document may call a requirement. */
  readonly required: Set<string>;
}

/** `20.19`, `8.6`, `7`. */
const VERSION = String.raw`\d{1,2}(?:\.\d+)*(?![\d.]*\d)`;

/** What the tables of docs/support.md say, by the product's name. */
export function supportedVersions(support: string): Map<string, Supported> {
  const rows = rowsOf(support);
  const supported = new Map<string, Supported>();
  for (const [name = '', needs = '', ...tried] of rows) {
    if (!new RegExp(`^${VERSION}$`).test(needs)) continue;
    const oldestTried = versionsIn(tried[0] ?? '')[0] ?? needs;
    supported.set(name.replace(/ \(.*\)$/, ''), {
      needs,
      oldestTried,
      versions: new Set([needs, ...versionsIn(tried.join(' '))]),
      required: new Set([needs, oldestTried]),
    });
  }
  // The table of features has two columns.
  for (const [, needs = '', ...more] of rows) {
    if (more.length > 0) continue;
    for (const [, name = '', version = ''] of needs.matchAll(new RegExp(`([A-Z]\\w+) (${VERSION})`, 'g'))) {
      supported.get(name)?.versions.add(version);
      supported.get(name)?.required.add(version);
    }
  }
  return supported;
}

/** Names of products that documents use beside those of docs/support.md. */
const ALIASES: Readonly<Record<string, string>> = { 'Node.js': 'Node' };
/** Clients whose names are words of other meanings too. */
const AMBIGUOUS = new Set(['redis', 'zookeeper', 'pg']);

export interface WrongMention {
  readonly line: number;
  readonly text: string;
  readonly problem: string;
}

/**
 * The versions in a document that docs/support.md does not have. A requirement (`Redis ≥ 6.2`, `etcd 3.4 or newer`) names what the
 * product needs, the oldest version that was tried, or what a feature needs. Any other mention names a version of its row, or the
 * major version of one that was tried; `tested with` and `tried on` a version that was tried.
 */
export function wrongMentions(document: string, supported: ReadonlyMap<string, Supported>): WrongMention[] {
  const names = [...supported.keys(), ...Object.keys(ALIASES)].filter((name) => !AMBIGUOUS.has(name));
  const product = names
    .toSorted((a, b) => b.length - a.length)
    .map((name) => name.replaceAll('.', String.raw`\.`))
    .join('|');
  const pattern = new RegExp(
    String.raw`(?<![\w@/.-])(?<claim>(?:[Tt]ested|[Tt]ried) (?:on|with) )?(?<name>${product})(?<sign> ?(?:≥|>=) ?| \(?(?:from|since|before|below|at least) | )(?<first>${VERSION})` +
      String.raw`(?<more>(?:(?:, | and | or | to | ?[–/-] ?)${VERSION}(?! [a-z]*s\b))*)(?<after> ?\+| (?:and|or) (?:newer|later|above))?` +
      String.raw`(?! ?(?:%|[kM]?B\b|[mµ]?s\b|times\b))`,
    'g',
  );
  const found: WrongMention[] = [];
  const prose = document.replaceAll(/<!--[^]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, ' '));
  for (const match of prose.matchAll(pattern)) {
    const { claim, name = '', sign = '', first = '', more = '', after } = match.groups ?? {};
    const canonical = ALIASES[name] ?? name;
    const one = supported.get(canonical);
    if (one === undefined || isFigure(first, one)) continue;
    const isRequired = sign.trim() !== '' || (after !== undefined && more === '');
    const wrong = isRequired
      ? [first].filter((version) => !one.required.has(version))
      : [first, ...versionsIn(more)].filter((version) => !isKnown(version, one, claim !== undefined));
    if (wrong.length === 0) continue;
    const known = [...(isRequired ? one.required : one.versions)].join(', ');
    found.push({
      line: prose.slice(0, match.index).split('\n').length,
      text: match[0].trim(),
      problem: `docs/support.md has for ${canonical}${isRequired ? ' as a requirement' : ''}: ${known}`,
    });
  }
  return found;
}

/** A number far above all versions counts something: `ioredis 29`. */
function isFigure(number: string, { versions }: Supported): boolean {
  return Number.parseInt(number, 10) > 10 + Math.max(...[...versions].map((one) => Number.parseInt(one, 10)));
}

/** What was tried is in the row, and is not only what the product needs. */
function isKnown(version: string, { versions, needs, oldestTried }: Supported, isTried: boolean): boolean {
  const tried = [...versions].filter((one) => one !== needs || one === oldestTried);
  return (
    (isTried ? tried : [...versions]).includes(version) || tried.some((one) => one.startsWith(`${version}.`))
  );
}

function versionsIn(text: string): string[] {
  return text.replaceAll(/`[^`]*`/g, '').match(new RegExp(VERSION, 'g')) ?? [];
}

/** The cells of the lines of a table, without the rule below its heading. */
export function rowsOf(markdown: string): string[][] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}
