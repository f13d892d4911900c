import type { DefaultTheme } from 'vitepress';
import type { RepositoryDocument } from './documents.ts';
import type { ReferencePage } from './reference/reference-pages.ts';

interface Group {
  readonly text: string;
  /** Files that come first, in this order. */
  readonly first: readonly string[];
  /** Other files of the group, in the order of their names. */
  readonly rest?: RegExp;
  /** The group has a sidebar of its own, on pages with one of these paths. */
  readonly folders?: readonly string[];
}

/** The first group that names a file or whose pattern fits has it; a file that does not exist is left out. */
const GROUPS: readonly Group[] = [
  {
    text: 'Get started',
    first: [
      'docs/getting-started.md',
      'docs/ways-to-lock.md',
      'docs/choosing-a-backend.md',
      'docs/guides/kinds-of-locks.md',
      'docs/guides/ttl-and-wait.md',
      'README.md',
    ],
  },
  {
    text: 'By store',
    first: [
      'docs/backends/redis.md',
      'docs/backends/redisson.md',
      'docs/backends/postgres.md',
      'docs/backends/postgres-advisory.md',
      'docs/backends/mysql.md',
      'docs/backends/sqlite.md',
      'docs/backends/etcd.md',
      'docs/backends/zookeeper.md',
      'docs/hosted-stores.md',
      'docs/guides/serverless.md',
    ],
    rest: /^docs\/backends\//,
  },
  {
    text: 'By task',
    first: [
      'docs/once-per-slot.md',
      'docs/leader-election.md',
      'docs/guides/fencing.md',
      'docs/guides/transfer.md',
      'docs/guides/shared-results.md',
      'docs/guides/one-machine.md',
      'docs/command-line.md',
      'docs/nestjs.md',
      'docs/guides/in-your-application.md',
      'docs/web-locks.md',
      'docs/guides/testing-code-that-locks.md',
      'docs/guides/reentrancy.md',
      'docs/guides/migrating.md',
      'docs/redlock-compat.md',
      'docs/proper-lockfile.md',
    ],
    rest: /^docs\/guides\/(?!production|write-a-backend)/,
  },
  {
    text: 'Operate',
    first: [
      'docs/guides/production.md',
      'docs/troubleshooting.md',
      'docs/sizing.md',
      'docs/telemetry.md',
      'docs/support.md',
      'docs/threat-model.md',
      'docs/histories.md',
    ],
  },
  {
    text: 'Understand',
    first: [
      'docs/limits.md',
      'docs/guarantees.md',
      'docs/prove.md',
      'docs/spec.md',
      'docs/glossary.md',
      'docs/compatibility.md',
      'benchmarks/README.md',
      'benchmarks/languages.md',
      'docs/track-record.md',
      'docs/simulation.md',
    ],
    rest: /^docs\/(reports\/)?[^/]+\.md$/,
  },
  {
    text: 'Contribute',
    first: ['CONTRIBUTING.md', 'docs/guides/write-a-backend.md', 'docs/releasing.md', 'SECURITY.md'],
  },
  { text: 'Packages', first: ['packages/core/README.md'], rest: /^packages\//, folders: ['/packages/'] },
  { text: 'Decisions', first: [], rest: /^docs\/adr\//, folders: ['/decisions/'] },
  {
    text: 'Generated tables',
    first: [],
    rest: /^(benchmarks\/tables|docs\/generated)\//,
    folders: ['/benchmarks/tables/', '/generated/'],
  },
];

/** Pages whose title says too little, or too much, beside others. */
const TEXTS: Readonly<Record<string, string>> = {
  'README.md': 'The README',
  'docs/guides/in-your-application.md': 'In your application',
  'docs/guides/transfer.md': 'Transfer',
  'docs/guides/shared-results.md': 'Cache stampede',
  'docs/guides/serverless.md': 'Serverless',
};

export const topLinks: DefaultTheme.NavItem[] = [
  { text: 'Get started', link: '/getting-started', activeMatch: '^/getting-started' },
  {
    text: 'Stores',
    link: '/choosing-a-backend',
    activeMatch: '^/(choosing-a-backend|hosted-stores|backends/)',
  },
  {
    text: 'Operate',
    link: '/guides/production',
    activeMatch: '^/(guides/production|troubleshooting)',
  },
  { text: 'Guarantees', link: '/guarantees' },
  { text: 'API', link: '/api/', activeMatch: '^/api/' },
  { text: 'Playground', link: '/playground' },
];

interface DocumentGroup {
  readonly text: string;
  /** Empty for a group of the main sidebar. */
  readonly folders: readonly string[];
  readonly documents: readonly RepositoryDocument[];
}

/** Every document is in exactly one group; a group without documents is left out. */
export function groupsOf(documents: readonly RepositoryDocument[]): DocumentGroup[] {
  const named = new Set(GROUPS.flatMap((group) => group.first));
  const left = new Set(documents);
  const groups = GROUPS.map(({ text, first, rest, folders = [] }) => {
    const inGroup = [
      ...first.flatMap((file) => documents.find((document) => document.file === file) ?? []),
      ...[...left].filter(({ file }) => !named.has(file) && rest?.test(file)),
    ];
    for (const document of inGroup) left.delete(document);
    return { text, folders, documents: inGroup };
  });
  if (left.size > 0)
    throw new Error(`in no group of the navigation: ${[...left].map(({ file }) => file).join(', ')}`);
  return groups.filter((group) => group.documents.length > 0);
}

/** The sidebars: the packages, the decisions and each entry point of the reference have their own, by the path of their pages. */
export function sidebarsOf(
  documents: readonly RepositoryDocument[],
  reference: readonly ReferencePage[],
): DefaultTheme.SidebarMulti {
  const groups = groupsOf(documents).map(({ text, folders, documents: inGroup }) => ({
    text,
    folders,
    items: inGroup.map(({ file, title, route }) => ({ text: TEXTS[file] ?? title, link: `/${route}` })),
  }));
  const own = groups.filter(({ folders }) => folders.length > 0);
  const more = [
    { text: 'API reference', link: '/api/' },
    ...own.map(({ text, items }) => ({ text, link: items[0]?.link ?? '/' })),
  ];
  const back = { text: 'Documents', items: [{ text: 'All documents', link: '/getting-started' }] };
  const ofFolders = own.flatMap(({ text, folders, items }) =>
    folders.map((folder) => [folder, [back, { text, items }]] as const),
  );
  return {
    ...Object.fromEntries(ofFolders),
    ...referenceSidebars(reference),
    '/': [
      ...groups.filter(({ folders }) => folders.length === 0).map(({ text, items }) => ({ text, items })),
      { text: 'More', items: more },
    ],
  };
}

/** An entry point's sidebar has its symbols; the one of the list of all has the entry points. */
function referenceSidebars(reference: readonly ReferencePage[]): DefaultTheme.SidebarMulti {
  const all = { text: 'All packages', link: '/api/' };
  const modules = reference.filter(({ route }) => route !== 'api/');
  const sidebars = modules.map(({ title, route, groups }) => [
    `/${route}`,
    [
      { text: 'API reference', items: [all, { text: title, link: `/${route}` }] },
      ...groups.map(({ text, symbols }) => ({
        text,
        items: symbols.map((symbol) => ({ text: symbol.title, link: `/${symbol.route}` })),
      })),
    ],
  ]);
  const items = [all, ...modules.map(({ title, route }) => ({ text: title, link: `/${route}` }))];
  return { ...Object.fromEntries(sidebars), '/api/': [{ text: 'API reference', items }] };
}
