import type { DefaultTheme } from 'vitepress';
import type { RepositoryDocument } from './documents.ts';
import type { ReferencePage } from './reference/reference-pages.ts';

interface Group {
  readonly text: string;
  /** Files that come first, in this order. */
  readonly first: readonly string[];
  /** Other files of the group, in the order of their names. */
  readonly rest?: RegExp;
  readonly collapsed?: boolean;
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
  { text: 'Operation', first: ['docs/guides/operating.md', 'docs/telemetry.md', 'docs/histories.md'] },
  {
    text: 'Promises and proof',
    first: [
      'docs/spec.md',
      'docs/glossary.md',
      'docs/compatibility.md',
      'docs/guarantees.md',
      'benchmarks/README.md',
    ],
    rest: /^docs\/[^/]+\.md$/,
  },
  { text: 'Development', first: ['CONTRIBUTING.md', 'docs/guides/write-a-backend.md'] },
  { text: 'Packages', first: ['packages/core/README.md'], rest: /^packages\//, collapsed: true },
  { text: 'Decisions', first: [], rest: /^docs\/adr\//, collapsed: true },
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
): { text: string; collapsed: boolean; documents: RepositoryDocument[] }[] {
  const named = new Set(GROUPS.flatMap((group) => group.first));
  const left = new Set(documents);
  const groups = GROUPS.map(({ text, first, rest, collapsed = false }) => {
    const inGroup = [
      ...first.flatMap((file) => documents.find((document) => document.file === file) ?? []),
      ...[...left].filter(({ file }) => !named.has(file) && rest?.test(file)),
    ];
    for (const document of inGroup) left.delete(document);
    return { text, collapsed, documents: inGroup };
  });
  if (left.size > 0)
    throw new Error(`in no group of the navigation: ${[...left].map(({ file }) => file).join(', ')}`);
  return groups;
}

/** The sidebar of every page. */
export function sidebarOf(
  documents: readonly RepositoryDocument[],
  reference: readonly ReferencePage[],
): DefaultTheme.SidebarItem[] {
  return [
    ...groupsOf(documents).map(({ text, collapsed, documents: inGroup }) => ({
      text,
      collapsed,
      items: inGroup.map(({ title, route }) => ({
        text: title,
        link: route === 'index' ? '/' : `/${route}`,
      })),
    })),
    {
      text: 'API reference',
      collapsed: true,
      items: reference.map(({ title, route }) => ({ text: title, link: `/${route}` })),
    },
  ];
}
