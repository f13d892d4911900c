interface PageExtras {
  readonly text: string;
  readonly frontmatter: Readonly<Record<string, unknown>>;
}

const WIDE = { aside: false, pageClass: 'wide' };

/** What the site adds to a document: pictures and controls over what the document itself says. */
export function withWidgets(file: string, text: string): PageExtras {
  switch (file) {
    case 'docs/choosing-a-backend.md':
      return { text: text.replace(/^## Five questions$/m, '$&\n\n<WhichBackend />'), frontmatter: {} };
    case 'docs/sizing.md':
      return { text: text.replace(/^## Your load$/m, '$&\n\n<SizingCalculator />'), frontmatter: {} };
    case 'docs/compatibility.md':
    case 'docs/generated/compatibility-cases.md':
    case 'docs/generated/guarantees.md':
      return { text: insertBeforeFirstTable(text, '<TableFilter />'), frontmatter: WIDE };
    default:
      return { text, frontmatter: /^(docs\/generated|benchmarks\/tables)\//.test(file) ? WIDE : {} };
  }
}

function insertBeforeFirstTable(text: string, inserted: string): string {
  return text.replace(/^\|/m, `${inserted}\n\n|`);
}
