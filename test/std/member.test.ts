import { assert, constantFrom, dictionary, jsonValue, oneof, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memberTexts } from '../../src/std/member.ts'
import { repeats } from '../support/full.ts'

/** V8's JSON.parse (Node 24) may take a name that begins with a quote for the name `\\`, once it has seen that one. */
const mayBeParsed = (name: string): boolean => !name.startsWith('"')

describe('memberTexts', () => {
  it('cuts out the same value that JSON.parse finds under a name, in any object and with any white space', () => {
    const members = dictionary(
      oneof(constantFrom('payload', 'type', 'a"b', '\\', 'é'), string()).filter(mayBeParsed),
      jsonValue(),
    )
    assert(
      property(members, constantFrom(undefined, 1, '\t', '\n '), (object, space) => {
        const names = [...new Set([...Object.keys(object), 'payload', 'nowhere'])]
        const text = JSON.stringify(object, null, space)
        const parsed = JSON.parse(text) as Record<string, unknown>
        const texts = memberTexts(text, names)
        for (const [index, name] of names.entries()) {
          const cut = texts[index]
          expect(cut === undefined ? undefined : JSON.parse(cut)).toEqual(
            Object.hasOwn(parsed, name) ? parsed[name] : undefined,
          )
        }
      }),
      { numRuns: repeats(2000) },
    )
  })

  it.each([
    ['keeps every digit', '{"payload":{"n":12345678901234567890.5}}', '{"n":12345678901234567890.5}'],
    ['takes the last of a name', '{"payload":1,"payload":[2]}', '[2]'],
    ['reads names with escapes', '{"p\\u0061yload":"x"}', '"x"'],
    ['is not led astray by braces and quotes in strings', '{"a":"}\\"{","payload":"\\\\"}', '"\\\\"'],
    ['does not look into what is nested', '{"a":{"payload":1}}', undefined],
    ['finds nothing in an empty object', ' { } ', undefined],
    ['reads empty strings', '{"":"","payload":""}', '""'],
    ['reads what follows an empty string', '{"a":"","payload":7,"b":"x"}', '7'],
    ['takes a bare value up to its end', '{ "payload" : true }', 'true'],
  ])('%s', (_, text, expected) => {
    expect(memberTexts(text, ['payload'])).toEqual([expected])
  })

  it.each([' ', '\t', '\n', '\r', ' \r\n\t'])('leaves out the space %j around a value', (space) => {
    for (const value of ['true', '-1.5e3', '"x"', '{}', '[1]']) {
      const members = ['"a"', ':', '1', ',', '"payload"', ':', value]
      const text = ['', '{', ...members, '}', ''].join(space)
      expect(memberTexts(text, ['payload'])).toEqual([value])
    }
  })
})
