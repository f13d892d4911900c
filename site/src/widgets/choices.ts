import { plainText, tablesOf } from '../markdown-table.ts';

/** The questions of docs/choosing-a-backend.md, and the backends that each answer leaves. */
export interface Choices {
  readonly questions: readonly Question[];
  readonly backends: readonly BackendFacts[];
}

export interface Question {
  readonly text: string;
  readonly answers: readonly { readonly text: string; readonly leaves: readonly string[] }[];
}

export interface BackendFacts {
  readonly name: string;
  /** The page of the backend. */
  readonly link: string;
  /** What the table `Side by side` has of it: column and cell. */
  readonly facts: readonly (readonly [string, string])[];
}

/**
 * Reads the questions: each is a heading `### 1. …` with a table of answers, whose second column names backends as the table
 * `Side by side` does, separated by `·`, or is `all`, or `all but …`.
 */
export function readChoices(text: string): Choices {
  const [before = '', after = ''] = text.split(/^## Side by side$/m);
  const table = tablesOf(after)[0];
  if (table === undefined) throw new Error('choosing-a-backend.md has no table "Side by side"');
  const backends = table.rows.map(([first = '', ...cells]) => ({
    name: plainText(first),
    link: /\]\(([^)]+)\)/.exec(first)?.[1] ?? '',
    facts: cells.map((cell, index) => [table.heading[index + 1] ?? '', plainText(cell)] as const),
  }));
  const names = backends.map(({ name }) => name);
  const questions = before
    .split(/^### \d+\. /m)
    .slice(1)
    .map((part) => ({
      text: part.split('\n', 1)[0] ?? '',
      answers: (tablesOf(part)[0]?.rows ?? []).map(([answer = '', leaves = '']) => ({
        text: plainText(answer),
        leaves: namesOf(leaves, names),
      })),
    }));
  if (questions.length === 0 || questions.some(({ answers }) => answers.length < 2))
    throw new Error('choosing-a-backend.md: each question needs a table of at least two answers');
  return { questions, backends };
}

function namesOf(cell: string, all: readonly string[]): string[] {
  const listed = cell
    .replace(/^all( but )?/, '')
    .split('·')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const unknown = listed.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new Error(`choosing-a-backend.md: no row of "Side by side" is ${unknown.join(', ')}`);
  return cell.startsWith('all') ? all.filter((name) => !listed.includes(name)) : listed;
}
