import { LuaType, type LuaModule, type Pointer } from './lua-module.ts';
import { SimulatedRedisError, type SimulatedReply, StatusReply } from './reply.ts';

const SCRATCH_BYTES = 1024;

/** One Lua state: moves values between Lua and JavaScript as Redis moves them between Lua and its protocol. */
export class LuaState {
  readonly module: LuaModule;
  readonly address: Pointer;
  readonly #length: Pointer;
  readonly #names = new Map<string, Pointer>();
  #scratch: Pointer;
  #scratchSize = SCRATCH_BYTES;
  #memory: Buffer;

  constructor(module: LuaModule) {
    this.module = module;
    this.address = module._luaL_newstate();
    this.#length = module._malloc(4);
    this.#scratch = module._malloc(SCRATCH_BYTES);
    this.#memory = Buffer.from(module.HEAPU8.buffer);
  }

  /** A text in the interpreter's memory that ends with a zero, for names that stay. */
  name(text: string): Pointer {
    let pointer = this.#names.get(text);
    if (pointer === undefined) {
      pointer = this.module._malloc(text.length + 1);
      this.#view().write(`${text}\0`, pointer, 'latin1');
      this.#names.set(text, pointer);
    }
    return pointer;
  }

  /** Puts a text where the next one overwrites it. */
  write(text: string): Pointer {
    if (text.length > this.#scratchSize) {
      this.module._free(this.#scratch);
      this.#scratchSize = 2 * text.length;
      this.#scratch = this.module._malloc(this.#scratchSize);
    }
    this.#view().write(text, this.#scratch, 'latin1');
    return this.#scratch;
  }

  pushText(text: string): void {
    this.module._lua_pushlstring(this.address, this.write(text), text.length);
  }

  pushTexts(texts: readonly string[]): void {
    const { module, address } = this;
    module._lua_createtable(address, texts.length, 0);
    for (const [index, text] of texts.entries()) {
      this.pushText(text);
      module._lua_rawseti(address, -2, index + 1);
    }
  }

  /** Redis to Lua: null is `false`, a status `{ok}`, an error `{err}`. */
  pushReply(reply: SimulatedReply): void {
    const { module, address } = this;
    if (typeof reply === 'string') this.pushText(reply);
    else if (typeof reply === 'number') module._lua_pushnumber(address, reply);
    else if (reply === null) module._lua_pushboolean(address, 0);
    else if (reply instanceof StatusReply) this.#pushPair('ok', reply.text);
    else if (reply instanceof SimulatedRedisError) this.#pushPair('err', reply.message);
    else {
      module._lua_createtable(address, reply.length, 0);
      for (const [index, item] of reply.entries()) {
        this.pushReply(item);
        module._lua_rawseti(address, -2, index + 1);
      }
    }
  }

  /** Lua to Redis: numbers lose their fraction, `true` is 1, `false` and nil are null, and nil ends a list. */
  readReply(index: number): SimulatedReply {
    const { module, address } = this;
    switch (module._lua_type(address, index)) {
      case LuaType.string:
        return this.readText(index);
      case LuaType.number:
        return Math.trunc(module._lua_tonumber(address, index)) + 0;
      case LuaType.boolean:
        return module._lua_toboolean(address, index) === 1 ? 1 : null;
      case LuaType.table:
        return this.#readTable(index);
      default:
        return null;
    }
  }

  readText(index: number): string {
    const start = this.module._lua_tolstring(this.address, index, this.#length);
    const length = this.module.HEAPU32[this.#length >> 2] as number;
    return this.#view().toString('latin1', start, start + length);
  }

  /** A field of the table at the top of the stack, if it is a text or a number. */
  readField(name: string): string | undefined {
    const { module, address } = this;
    module._lua_getfield(address, -1, this.name(name));
    const type = module._lua_type(address, -1);
    const text = type === LuaType.string || type === LuaType.number ? this.readText(-1) : undefined;
    this.pop();
    return text;
  }

  pop(): void {
    this.module._lua_settop(this.address, -2);
  }

  #readTable(index: number): SimulatedReply {
    const { module, address } = this;
    if (index !== -1) throw new RangeError('a table is read at the top of the stack');
    const error = this.readField('err');
    if (error !== undefined) return new SimulatedRedisError(error);
    const status = this.readField('ok');
    if (status !== undefined) return new StatusReply(status);
    const items: SimulatedReply[] = [];
    for (;;) {
      module._lua_rawgeti(address, -1, items.length + 1);
      const isEnd = module._lua_type(address, -1) === LuaType.nil;
      if (!isEnd) items.push(this.readReply(-1));
      this.pop();
      if (isEnd) return items;
    }
  }

  #pushPair(name: string, text: string): void {
    const { module, address } = this;
    module._lua_createtable(address, 0, 1);
    this.pushText(text);
    module._lua_setfield(address, -2, this.name(name));
  }

  /** The interpreter's memory moves when it grows. */
  #view(): Buffer {
    const { buffer } = this.module.HEAPU8;
    if (this.#memory.buffer !== buffer) this.#memory = Buffer.from(buffer);
    return this.#memory;
  }
}
