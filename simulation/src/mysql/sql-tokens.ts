/** One piece of a statement: `word` is a name or a keyword, `literal` a number or bytes. */
export interface SqlToken {
  readonly kind: 'word' | 'literal' | 'text' | 'symbol' | 'end';
  /** Of a literal its place among those of the statement. */
  readonly text: string;
}

/** A statement without its literals, which are the same for many, and the literals in their order. */
export interface SqlTemplate {
  readonly text: string;
  /** Bytes are texts with one character for each. */
  readonly literals: readonly (number | string)[];
}

const LITERAL = /X'([0-9a-f]*)'|'[^']*'|`[^`]*`|\b\d+\b/g;
const TOKEN =
  /\s*(?:'(?<text>[^']*)'|\?(?<literal>\d+)|`(?<quoted>[^`]+)`|(?<word>(?:@@)?[A-Za-z_]\w*)|(?<symbol><=|>=|[-+=<>(),.]))/y;

/** Takes the literals out of a statement. */
export function templateOf(sql: string): SqlTemplate {
  const literals: (number | string)[] = [];
  const text = sql.replace(LITERAL, (found, bytes: string | undefined) => {
    const isQuoted = found.startsWith("'") || found.startsWith('`');
    if (bytes === undefined && isQuoted) return found;
    literals.push(bytes === undefined ? Number(found) : Buffer.from(bytes, 'hex').toString('latin1'));
    return `?${literals.length - 1}`;
  });
  return { text, literals };
}

/** The pieces of a template of the SQL of `@locks/mysql`. */
export function tokensOf(template: string): readonly SqlToken[] {
  const tokens: SqlToken[] = [];
  TOKEN.lastIndex = 0;
  const end = template.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(template)?.groups;
    if (groups === undefined)
      throw new Error(`the simulated MySQL cannot read: ${template.slice(at, at + 60)}`);
    tokens.push(tokenOf(groups));
  }
  tokens.push({ kind: 'end', text: '' });
  return tokens;
}

function tokenOf({ text, literal, quoted, word, symbol = '' }: Record<string, string | undefined>): SqlToken {
  if (literal !== undefined) return { kind: 'literal', text: literal };
  if (text !== undefined) return { kind: 'text', text };
  const name = quoted ?? word;
  return name === undefined ? { kind: 'symbol', text: symbol } : { kind: 'word', text: name };
}
