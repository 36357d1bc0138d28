; What the C program can't do itself: start, the vertical blank, the pad, and variables at fixed addresses.

.import _main
.importzp sp
.import __STACK_START__, __STACK_SIZE__
.export __STARTUP__ : absolute = 1
.export _wait_frame, _read_pad, _screen_off, _screen_on
.export _oam, _hud

; ---- variables that players, bots and data.json look at: their order here is their address

.segment "VARS"
.export _score, _lives, _over, _time_left, _level, _ship_x, _shot_x, _shot_y, _mode
.export _thing_kind, _thing_x, _thing_y

_score:      .res 2 ; $0300
_lives:      .res 1 ; $0302
_over:       .res 1 ; $0303
_time_left:  .res 2 ; $0304: in frames
_level:      .res 1 ; $0306: 1 to 3
_ship_x:     .res 1 ; $0307
_shot_x:     .res 1 ; $0308
_shot_y:     .res 1 ; $0309: 0 without a shot
_mode:       .res 1 ; $030A
             .res 5
_thing_kind: .res 16 ; $0310: see gemfall.c
_thing_x:    .res 16 ; $0320
_thing_y:    .res 16 ; $0330

.segment "OAM"
_oam: .res 256

.segment "BSS"
HUD_TILES = 32
_hud: .res HUD_TILES ; the second row of the screen

.segment "ZEROPAGE"
frame_ready: .res 1

.segment "HEADER"
    .byte "NES", $1A, 1, 1, 1, 0 ; 16 KB program, 8 KB tiles, vertical mirroring, mapper 0

.segment "STARTUP"
reset:
    sei
    cld
    ldx #$40
    stx $4017 ; no sound interrupts
    ldx #$FF
    txs
    inx
    stx $2000
    stx $2001
    stx $4010
:   bit $2002
    bpl :-
    txa
:   sta $0000,x
    sta $0100,x
    sta $0200,x
    sta $0300,x
    sta $0400,x
    sta $0500,x
    sta $0600,x
    sta $0700,x
    inx
    bne :-
:   bit $2002
    bpl :-
    lda #<(__STACK_START__ + __STACK_SIZE__)
    sta sp
    lda #>(__STACK_START__ + __STACK_SIZE__)
    sta sp+1
    jmp _main

nmi:
    pha
    txa
    pha
    lda #0
    sta $2003
    lda #>_oam
    sta $4014
    lda #$20
    sta $2006
    lda #$40
    sta $2006
    ldx #0
:   lda _hud,x
    sta $2007
    inx
    cpx #HUD_TILES
    bne :-
    lda #0
    sta $2005
    sta $2005
    lda #$90 ; interrupt at every blank, background from the second table
    sta $2000
    inc frame_ready
    pla
    tax
    pla
irq:
    rti

.segment "CODE"

_wait_frame:
    lda #0
    sta frame_ready
:   lda frame_ready
    beq :-
    rts

; Buttons as bits: A, B, Select, Start, Up, Down, Left, Right from the highest.
_read_pad:
    lda #1
    sta $4016
    lda #0
    sta $4016
    ldy #8
    ldx #0
:   lda $4016
    lsr a
    txa
    rol a
    tax
    dey
    bne :-
    ldx #0
    rts

_screen_off:
    lda #0
    sta $2000
    sta $2001
    rts

_screen_on:
:   bit $2002
    bpl :-
    lda #0
    sta $2005
    sta $2005
    lda #$90
    sta $2000
    lda #$1E
    sta $2001
    rts

.segment "VECTORS"
    .addr nmi, reset, irq
