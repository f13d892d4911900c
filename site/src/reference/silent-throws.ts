import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DeclarationReflection, type ProjectReflection, ReflectionKind } from 'typedoc';
import ts from 'typescript';
import { root } from '../repository.ts';

/** Functions of these packages that throw what their caller was given wrongly. */
const THROWING = /^(check|assert|read[A-Z]\w*Options$|readOptions$|resolve\w*Options$|illegal)/;

/**
 * Public functions, methods and constructors whose source throws, or calls one of the functions that check arguments, and whose
 * documentation has no `@throws`.
 */
export function silentThrows(project: ProjectReflection): string[] {
  const thrown = new Map<string, Set<string>>();
  return (project.children ?? []).flatMap((module) => {
    const folder = `packages/${module.name.split('/')[1] ?? ''}/{src,conformance}`;
    const names = thrown.get(folder) ?? namesThatThrow(folder);
    thrown.set(folder, names);
    return (module.children ?? []).flatMap((symbol) =>
      [symbol, ...(symbol.children ?? [])]
        .map((one) => ({ one, name: one === symbol ? symbol.name : `${symbol.name}.${one.name}` }))
        .filter(({ one, name }) => names.has(name) && !saysWhatItThrows(one))
        .map(({ name }) => `${module.name}: ${name} throws, and does not say what`),
    );
  });
}

function saysWhatItThrows({ signatures = [], kind }: DeclarationReflection): boolean {
  const callable = ReflectionKind.Function | ReflectionKind.Method | ReflectionKind.Constructor;
  if ((kind & callable) === 0) return true;
  return signatures.some(({ comment }) => comment?.getTag('@throws') !== undefined);
}

/** `createLocks`, `HistoryRecorder.acquire`: of the exported functions and classes of a package. */
function namesThatThrow(folder: string): Set<string> {
  const names = new Set<string>();
  for (const file of globSync(`${folder}/**/*.ts`, { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const statement of ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true).statements) {
      if (!isExported(statement)) continue;
      if (ts.isFunctionDeclaration(statement) && throws(statement.body))
        names.add(statement.name?.text ?? '');
      if (!ts.isClassDeclaration(statement)) continue;
      for (const member of statement.members) {
        const body =
          ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member) ? member.body : undefined;
        if (!throws(body)) continue;
        const name = ts.isConstructorDeclaration(member) ? 'constructor' : (member.name?.getText() ?? '');
        names.add(`${statement.name?.text ?? ''}.${name}`);
      }
    }
  }
  return names;
}

function isExported(statement: ts.Statement): boolean {
  return (
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
  );
}

/** What an inner function throws is not thrown by the outer one. */
function throws(node: ts.Node | undefined): boolean {
  if (node === undefined || ts.isFunctionLike(node)) return false;
  if (ts.isThrowStatement(node)) return true;
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && THROWING.test(node.expression.text))
    return true;
  return ts.forEachChild(node, (child) => throws(child) || undefined) ?? false;
}
