import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript-5.9';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** A parameter of a public function that takes options. */
export interface PublicOptions {
  /** `@locks/core: createLocks(options)`, or `LockManager.lock(options)` for a method of a returned object. */
  readonly key: string;
  /** The names of the options; those of nested objects as `fencing.schema`. */
  readonly names: readonly string[];
}

/** Every parameter for options of the functions that the published packages export, and of the objects that these return. */
export function publicOptions(): readonly PublicOptions[] {
  const entries = entryPoints();
  const program = ts.createProgram(
    entries.map(({ types }) => types),
    {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      strict: true,
      skipLibCheck: true,
    },
  );
  const found = entries.flatMap(({ name, types }) => new EntryPoint(program, name, types).options());
  const byKey = new Map(found.map((one) => [one.key, one]));
  return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

interface Entry {
  /** The name in imports: `@locks/core/transfer`. */
  readonly name: string;
  readonly types: string;
}

function entryPoints(): Entry[] {
  return globSync('packages/*/package.json', { cwd: root }).flatMap((manifest) => {
    const folder = join(root, dirname(manifest));
    const { name, exports } = JSON.parse(readFileSync(join(root, manifest), 'utf8')) as {
      name: string;
      exports: Record<string, string | { default: string }>;
    };
    return Object.entries(exports).flatMap(([path, target]) => {
      if (typeof target === 'string') return [];
      const types = join(folder, target.default.replace(/\.js$/, '.d.ts'));
      return [{ name: name + path.slice(1), types }];
    });
  });
}

/** A module that users import, with its exports. */
class EntryPoint {
  readonly #checker: ts.TypeChecker;
  readonly #name: string;
  readonly #source: ts.SourceFile;
  readonly #seen = new Set<ts.Type>();
  readonly #found: PublicOptions[] = [];

  constructor(program: ts.Program, name: string, types: string) {
    const source = program.getSourceFile(types);
    if (source === undefined) throw new Error(`${types} is missing: build the packages first`);
    this.#checker = program.getTypeChecker();
    this.#name = name;
    this.#source = source;
  }

  options(): readonly PublicOptions[] {
    const module = this.#checker.getSymbolAtLocation(this.#source);
    for (const exported of module === undefined ? [] : this.#checker.getExportsOfModule(module)) {
      const symbol =
        exported.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(exported) : exported;
      if (!(symbol.flags & ts.SymbolFlags.Function)) continue;
      this.#visitFunction(this.#checker.getTypeOfSymbol(symbol), `${this.#name}: ${exported.name}`);
    }
    return this.#found;
  }

  #visitFunction(type: ts.Type, called: string): void {
    for (const signature of type.getCallSignatures()) {
      for (const parameter of signature.parameters) {
        const names = this.#optionsOf(this.#checker.getTypeOfSymbol(parameter));
        if (names.length > 0) this.#found.push({ key: `${called}(${parameter.name})`, names });
      }
      this.#visitResult(signature.getReturnType());
    }
  }

  /** The methods of the object that a function returns, directly or by a promise. */
  #visitResult(given: ts.Type): void {
    const type = this.#checker.getAwaitedType(given) ?? given;
    // A manager gives a lock together with what forbids to await it.
    const parts = partsOf(type).flatMap((part) => (part.isIntersection() ? part.types : [part]));
    for (const part of parts) {
      if (this.#seen.has(part) || !isOurs(part)) continue;
      this.#seen.add(part);
      const owner = part.getSymbol()?.name.replace(/\$\d+$/, '') ?? '';
      for (const property of part.getProperties()) {
        if (isOfBackend(property)) continue;
        const propertyType = this.#checker.getTypeOfSymbol(property);
        this.#visitFunction(propertyType, `${owner}.${property.name}`);
        this.#visitResult(propertyType);
      }
    }
  }

  #optionsOf(type: ts.Type): string[] {
    const names = partsOf(type)
      .filter(isPlain)
      .flatMap((part) => this.#namesOf(part));
    return [...new Set(names)];
  }

  /** @param path - this type and those around it: one that contains itself is named once */
  #namesOf(part: ts.Type, path: readonly ts.Type[] = [part]): string[] {
    return part.getProperties().flatMap((property) => {
      const type = this.#checker.getTypeOfSymbol(property);
      // `pool?: never` declares that an option is absent.
      if (this.#checker.getNonNullableType(type).flags & ts.TypeFlags.Never) return [];
      const nested = partsOf(type)
        .filter((one) => isOurs(one) && isPlain(one) && !path.includes(one))
        .flatMap((one) => this.#namesOf(one, [...path, one]));
      return [property.name, ...nested.map((name) => `${property.name}.${name}`)];
    });
  }
}

function partsOf(type: ts.Type): readonly ts.Type[] {
  return type.isUnion() ? type.types : [type];
}

/** Whether a type is an object of named values: no list, no function, no methods. */
function isPlain(type: ts.Type): boolean {
  const isObject = (type.flags & ts.TypeFlags.Object) !== 0 || type.isIntersection();
  if (!isObject || type.getCallSignatures().length + type.getConstructSignatures().length > 0) return false;
  const properties = type.getProperties();
  const isMethod = ({ declarations = [] }: ts.Symbol): boolean =>
    declarations.some((one) => ts.isMethodSignature(one) || ts.isMethodDeclaration(one));
  return properties.length > 0 && !properties.some(isMethod);
}

/** Methods of a backend are left out: core calls them, users do not. */
function isOfBackend({ declarations = [] }: ts.Symbol): boolean {
  return declarations.some(
    ({ parent }) => ts.isInterfaceDeclaration(parent) && parent.name.text.startsWith('LockBackend'),
  );
}

/** Whether a type is declared in this repository, at least in part. */
function isOurs(type: ts.Type): boolean {
  return [type.getSymbol(), ...type.getProperties()].some((symbol) =>
    symbol?.declarations?.some((one) => !one.getSourceFile().fileName.includes('/node_modules/')),
  );
}
