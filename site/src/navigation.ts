import type { DefaultTheme } from 'vitepress';
import type { RepositoryDocument } from './documents.ts';
import type { ReferencePage } from './reference/reference-pages.ts';

interface Group {
  readonly text: string;
  /** Files that come first, in this order. */
  readonly first: readonly string[];
  /** Other files of the group, in the order of their names. */
  readonly rest?: RegExp;
  /** The group has a sidebar of its own, on pages with this path. */
  readonly folder?: string;
}

/** The first group that names a file or whose pattern fits has it. */
const GROUPS: readonly Group[] = [
  {
    text: 'Start',
    first: [
      'README.md',
      'docs/choosing-a-backend.md',
      'docs/guides/kinds-of-locks.md',
      'docs/guides/fencing.md',
    ],
  },
  {
    text: 'Tasks',
    first: [
      'docs/once-per-slot.md',
      'docs/leader-election.md',
      'docs/command-line.md',
      'docs/web-locks.md',
      'docs/nestjs.md',
    ],
    rest: /^docs\/(guides\/(?!operating|write-a-backend)|redlock-compat)/,
  },
  {
    text: 'Backends',
    first: ['docs/backends/redis.md', 'docs/backends/redis-protocol.md'],
    rest: /^docs\/backends\//,
  },
  {
    text: 'Operation',
    first: ['docs/guides/operating.md', 'docs/telemetry.md', 'docs/histories.md', 'docs/support.md'],
  },
  {
    text: 'Promises and proof',
    first: [
      'docs/spec.md',
      'docs/glossary.md',
      'docs/compatibility.md',
      'docs/guarantees.md',
      'benchmarks/README.md',
      'benchmarks/languages.md',
    ],
    rest: /^docs\/[^/]+\.md$/,
  },
  {
    text: 'Development',
    first: ['CONTRIBUTING.md', 'docs/guides/write-a-backend.md', 'docs/releasing.md', 'SECURITY.md'],
  },
  { text: 'Packages', first: ['packages/core/README.md'], rest: /^packages\//, folder: '/packages/' },
  { text: 'Decisions', first: [], rest: /^docs\/adr\//, folder: '/decisions/' },
];

export const topLinks: DefaultTheme.NavItem[] = [
  { text: 'Backends', link: '/choosing-a-backend' },
  { text: 'Guides', link: '/guides/kinds-of-locks' },
  { text: 'Specification', link: '/spec' },
  { text: 'API', link: '/api/' },
  { text: 'Playground', link: '/playground' },
];

/** Every document is in exactly one group. */
export function groupsOf(
  documents: readonly RepositoryDocument[],
): { text: string; folder: string | undefined; documents: RepositoryDocument[] }[] {
  const named = new Set(GROUPS.flatMap((group) => group.first));
  const left = new Set(documents);
  const groups = GROUPS.map(({ text, first, rest, folder }) => {
    const inGroup = [
      ...first.flatMap((file) => documents.find((document) => document.file === file) ?? []),
      ...[...left].filter(({ file }) => !named.has(file) && rest?.test(file)),
    ];
    for (const document of inGroup) left.delete(document);
    return { text, folder, documents: inGroup };
  });
  if (left.size > 0)
    throw new Error(`in no group of the navigation: ${[...left].map(({ file }) => file).join(', ')}`);
  return groups;
}

/** The sidebars: the packages, the decisions and the reference have their own, by the path of their pages. */
export function sidebarsOf(
  documents: readonly RepositoryDocument[],
  reference: readonly ReferencePage[],
): DefaultTheme.SidebarMulti {
  const groups = groupsOf(documents).map(({ text, folder, documents: inGroup }) => ({
    text,
    folder,
    items: inGroup.map(({ title, route }) => ({ text: title, link: route === 'index' ? '/' : `/${route}` })),
  }));
  const own = [
    ...groups.filter(({ folder }) => folder !== undefined),
    {
      text: 'API reference',
      folder: '/api/',
      items: reference.map(({ title, route }) => ({ text: title, link: `/${route}` })),
    },
  ];
  const more = own.map(({ text, items }) => ({ text, link: items[0]?.link ?? '/' }));
  const back = { text: 'Documents', items: [{ text: 'All documents', link: '/' }] };
  return {
    ...Object.fromEntries(own.map(({ text, folder = '', items }) => [folder, [back, { text, items }]])),
    '/': [
      ...groups.filter(({ folder }) => folder === undefined).map(({ text, items }) => ({ text, items })),
      { text: 'More', items: more },
    ],
  };
}
