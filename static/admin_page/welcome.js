// What a new admin sees first.

import {h} from './shared.js'
import {link, main} from './elements.js'
import {tagSection} from './tag.js'
import {say} from './texts.js'

export function draw() {
  main.append(
    h('p', {}, say('welcome_lead')),
    ...tagSection(),
    h('h2', {}, link('#queue', say('toqueue'))),
    h('p', {}, link('#settings', say('findings'))))
}
