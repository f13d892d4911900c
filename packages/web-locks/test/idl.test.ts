import { memoryBackend } from '@locks/memory';
import { type AttributeMemberType, type InterfaceType, type OperationMemberType, parse } from 'webidl2';
import { afterAll, describe, expect, it } from 'vitest';
import { Lock, LockManager, type WebLocks, webLocks } from '../src/index.ts';

/** The interfaces that the standard declares. */
const IDL = `
  interface LockManager {
    Promise<any> request(DOMString name, LockGrantedCallback callback);
    Promise<any> request(DOMString name, LockOptions options, LockGrantedCallback callback);
    Promise<LockManagerSnapshot> query();
  };
  interface Lock {
    readonly attribute DOMString name;
    readonly attribute LockMode mode;
  };
`;
const interfaces = parse(IDL) as InterfaceType[];

/** An object of each interface, from the platform where it has one, and from this package. */
interface Implementation {
  readonly objects: Readonly<Record<string, object>>;
  /** What is exported, or else the constructors of the objects. */
  readonly interfaceObjects: Readonly<Record<string, unknown>>;
  /** Whether operations look at what they are called on; those of Node do not. */
  readonly checksReceivers: boolean;
}

const ours = webLocks(memoryBackend());
afterAll(() => ours.close());
const implementations: [string, Implementation][] = [
  [
    'webLocks()',
    { ...(await objectsOf(ours)), interfaceObjects: { LockManager, Lock }, checksReceivers: true },
  ],
];
const platform = (globalThis.navigator as { locks?: unknown }).locks as WebLocks | undefined;
if (platform !== undefined) implementations.push(['navigator.locks', await objectsOf(platform)]);

async function objectsOf(locks: WebLocks): Promise<Implementation> {
  const objects = { LockManager: locks, Lock: (await locks.request('a', (lock) => lock)) as object };
  const interfaceObjects = { LockManager: locks.constructor, Lock: objects.Lock.constructor };
  return { objects, interfaceObjects, checksReceivers: false };
}

const operationsOf = ({ members }: InterfaceType): OperationMemberType[] =>
  members.filter((member) => member.type === 'operation');
const attributesOf = ({ members }: InterfaceType): AttributeMemberType[] =>
  members.filter((member) => member.type === 'attribute');
/** Of overloads the shortest counts. */
const lengthOf = (type: InterfaceType, name: string | undefined | null): number =>
  Math.min(
    ...operationsOf(type)
      .filter((operation) => operation.name === name)
      .map(({ arguments: list }) => list.filter(({ optional }) => !optional).length),
  );

describe.each(implementations)('%s', (_, { objects, interfaceObjects, checksReceivers }) => {
  describe.each(interfaces.map((type) => [type.name, type] as const))('%s', (name, type) => {
    const object = objects[name] as object;
    const interfaceObject = interfaceObjects[name] as new () => unknown;
    const { prototype } = interfaceObject as { prototype: object };

    it('has an interface object that nobody can call, with its name and no parameters', () => {
      expect(typeof interfaceObject).toBe('function');
      expect(Object.getPrototypeOf(interfaceObject)).toBe(Function.prototype);
      expect([interfaceObject.name, interfaceObject.length]).toEqual([name, 0]);
      expect(Object.getOwnPropertyDescriptor(interfaceObject, 'prototype')).toEqual({
        value: prototype,
        writable: false,
        enumerable: false,
        configurable: false,
      });
      expect(() => new interfaceObject()).toThrow(TypeError);
      expect(() => Reflect.apply(interfaceObject, undefined, [])).toThrow(TypeError);
    });

    it('has a prototype that refers back to it, and its name as a data property', () => {
      expect(Object.getPrototypeOf(prototype)).toBe(Object.prototype);
      expect(Object.getOwnPropertyDescriptor(prototype, 'constructor')).toEqual({
        value: interfaceObject,
        writable: true,
        enumerable: false,
        configurable: true,
      });
      expect(Object.getOwnPropertyDescriptor(prototype, Symbol.toStringTag)).toEqual({
        value: name,
        writable: false,
        enumerable: false,
        configurable: true,
      });
      expect(Object.prototype.toString.call(prototype)).toBe(`[object ${name}]`);
    });

    it('has objects of that prototype, without members of their own', () => {
      expect(Object.getPrototypeOf(object)).toBe(prototype);
      expect(object).toBeInstanceOf(interfaceObject);
      expect(Object.prototype.toString.call(object)).toBe(`[object ${name}]`);
      expect(Object.keys(object)).toEqual([]);
    });

    it('shows in a loop exactly the members of the standard', () => {
      const members = new Set(type.members.map((member) => ('name' in member ? String(member.name) : '')));
      const seen: string[] = [];
      for (const key in object) seen.push(key);
      expect(new Set(seen)).toEqual(members);
    });

    it.each(operationsOf(type).map((operation) => [operation.name as string]))(
      'has the operation %s',
      (operation) => {
        const descriptor = Object.getOwnPropertyDescriptor(prototype, operation);
        expect(descriptor).toMatchObject({ writable: true, enumerable: true, configurable: true });
        const method = descriptor?.value as { name: string; length: number };
        expect([method.name, method.length]).toEqual([operation, lengthOf(type, operation)]);
        expect('prototype' in method).toBe(false);
      },
    );

    it.each(attributesOf(type).map((attribute) => [attribute.name]))('has the attribute %s', (attribute) => {
      const { get, ...descriptor } = Object.getOwnPropertyDescriptor(prototype, attribute) ?? {};
      expect(descriptor).toEqual({ set: undefined, enumerable: true, configurable: true });
      expect([get?.name, get?.length]).toEqual([`get ${attribute}`, 0]);
      expect(typeof Reflect.get(object, attribute)).toBe('string');
      // The setter that is missing: strict code throws.
      expect(Reflect.set(object, attribute, 'other')).toBe(false);
    });

    if (!checksReceivers) return;
    it('refuses other objects: attributes throw, operations reject', async () => {
      for (const receiver of [undefined, null, {}, prototype, Object.create(prototype)] as object[]) {
        for (const { name: operation } of operationsOf(type)) {
          const method = Reflect.get(prototype, operation as string) as () => Promise<unknown>;
          await expect(Reflect.apply(method, receiver, ['a', () => {}])).rejects.toThrow(TypeError);
        }
        for (const { name: attribute } of attributesOf(type)) {
          const get = Object.getOwnPropertyDescriptor(prototype, attribute)?.get as () => unknown;
          expect(() => Reflect.apply(get, receiver, [])).toThrow(TypeError);
        }
      }
    });
  });
});

describe('webLocks()', () => {
  it('has constructors that say why they throw', () => {
    for (const interfaceObject of [Lock, LockManager] as unknown as (new () => unknown)[]) {
      expect(() => new interfaceObject()).toThrow('Illegal constructor');
    }
  });

  it('has what the standard has not without showing it in a loop', () => {
    const more = Object.getOwnPropertyNames(LockManager.prototype).filter(
      (name) => !['constructor', 'request', 'query'].includes(name),
    );
    expect(more.toSorted()).toEqual(['clientId', 'close']);
  });
});
