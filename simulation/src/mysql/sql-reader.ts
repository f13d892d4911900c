import { type SqlToken, tokensOf } from './sql-tokens.ts';

/** Reads the pieces of a statement one after another. */
export class SqlReader {
  readonly #sql: string;
  readonly #tokens: readonly SqlToken[];
  #at = 0;

  constructor(sql: string) {
    this.#sql = sql;
    this.#tokens = tokensOf(sql);
  }

  get isAtEnd(): boolean {
    return this.#next.kind === 'end';
  }

  take(): SqlToken {
    const token = this.#next;
    this.#at += 1;
    return token;
  }

  /** Takes these words or symbols, if all of them come next. */
  accepts(...texts: readonly string[]): boolean {
    const isNext = texts.every((text, index) => {
      const { kind, text: found } = this.#tokens[this.#at + index] ?? { kind: 'end', text: '' };
      return (kind === 'word' || kind === 'symbol') && found === text;
    });
    if (isNext) this.#at += texts.length;
    return isNext;
  }

  isNext(text: string): boolean {
    return this.isNextWord && this.#next.text === text;
  }

  get isNextWord(): boolean {
    return this.#next.kind === 'word';
  }

  expects(...texts: readonly string[]): void {
    if (!this.accepts(...texts)) throw this.unreadable();
  }

  /** `(one, another, …)` */
  list<T>(read: () => T): T[] {
    this.expects('(');
    const all = [read()];
    while (this.accepts(',')) all.push(read());
    this.expects(')');
    return all;
  }

  /** A name of a table or a column, with that of its database left out. */
  name(): string {
    const { kind, text } = this.take();
    if (kind !== 'word') throw this.unreadable();
    return this.accepts('.') ? this.take().text : text;
  }

  unreadable(): Error {
    return new Error(`the simulated MySQL cannot read piece ${this.#at} of: ${this.#sql}`);
  }

  get #next(): SqlToken {
    return this.#tokens[this.#at] as SqlToken;
  }
}
