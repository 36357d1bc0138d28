/* Gemfall: a comet that nobody sees wanders over the sky and loses gems. Catch them; shoot or dodge the rocks
   between them. 45 seconds, three lives.

   A gem or a rock that is shot brings a point. Nothing depends on time of day or uninitialised memory: the same
   buttons give the same game. What bots read lies at fixed addresses (console.s). */

typedef unsigned char u8;
typedef unsigned int u16;

enum { PAD_A = 0x80, PAD_SELECT = 0x20, PAD_START = 0x10, PAD_LEFT = 0x02, PAD_RIGHT = 0x01 };
enum { TITLE, PLAY, OVER };
enum { NONE, GEM, ROCK, BLAST };
enum { THINGS = 10, LIVES = 3, LEVELS = 3 };
enum { GAME_FRAMES = 2700, STAGE_FRAMES = 450, SAFE_FRAMES = 60, BLAST_FRAMES = 12, DROP_FRAMES = 10 };
enum { GEM_POINTS = 1, ROCK_POINTS = 1, ROCKS_OF_256 = 40, TURNS_OF_256 = 40 };
enum { SHIP_Y = 196, GROUND_Y = 212, LEFTMOST = 12, RIGHTMOST = 228, SHIP_SPEED = 4, SHOT_SPEED = 6, MIDDLE = 120 };
enum { REACH_X = 20, REACH_Y = 12, SHOT_REACH = 12 };
enum { TILE_SHIP = 0x01, TILE_GEM = 0x03, TILE_ROCK = 0x05, TILE_SHOT = 0x09 };
enum { TILE_BLAST = 0x0A, TILE_FLAME = 0x0B, TILE_WING = 0x0C };
enum { BG_STAR = 0x01, BG_DUST = 0x02, BG_RIDGE = 0x03, BG_SOIL = 0x04, BG_LIFE = 0x05, BG_FUEL = 0x06 };
enum { FLIP_X = 0x40, FLIP_Y = 0x80 };
enum { PALETTE_SHIP = 0, PALETTE_GEM = 1, PALETTE_ROCK = 2, PALETTE_FIRE = 3 };

#define PPU_ADDRESS (*(volatile u8*)0x2006)
#define PPU_DATA (*(volatile u8*)0x2007)

extern u16 score, time_left;
extern u8 lives, over, level, ship_x, shot_x, shot_y, mode;
extern u8 thing_kind[THINGS], thing_x[THINGS], thing_y[THINGS];
extern u8 oam[256], hud[32];

void wait_frame(void);
u8 read_pad(void);
void screen_off(void);
void screen_on(void);

static u8 thing_part[THINGS]; /* 256ths of a pixel below thing_y; of a blast, frames that are left */
static u8 pad, pad_before, pressed, frame, stage, until_next, safe, used, comet_x, comet_left;
static u16 rng, speed;

static const u8 palette[32] = {
    0x0F, 0x2D, 0x10, 0x30, 0x0F, 0x17, 0x27, 0x37, 0x0F, 0x06, 0x16, 0x26, 0x0F, 0x1A, 0x2A, 0x3A,
    0x0F, 0x11, 0x2C, 0x30, 0x0F, 0x13, 0x24, 0x30, 0x0F, 0x07, 0x17, 0x27, 0x0F, 0x16, 0x28, 0x30,
};

static u8 random_byte(void) {
    static u8 i;
    for (i = 0; i < 8; ++i) rng = rng & 1 ? (rng >> 1) ^ 0xB400 : rng >> 1;
    return (u8)rng;
}

static void point_at(u16 address) {
    PPU_ADDRESS = (u8)(address >> 8);
    PPU_ADDRESS = (u8)address;
}

static void write_text(u16 address, const char* text) {
    point_at(address);
    while (*text) PPU_DATA = *text++;
}

/* ---- background, drawn while the screen is off */

static void draw_field(void) {
    static u8 row, column, tile, dice;
    static u16 rng_before;
    point_at(0x3F00);
    for (row = 0; row < 32; ++row) PPU_DATA = palette[row];
    point_at(0x2000);
    rng_before = rng;
    rng = 0x1D2B; /* the same sky in every game */
    for (row = 0; row < 30; ++row) {
        for (column = 0; column < 32; ++column) {
            dice = random_byte();
            tile = dice < 4 ? BG_STAR : dice < 14 ? BG_DUST : 0;
            if (row == 26) tile = BG_RIDGE;
            if (row > 26) tile = BG_SOIL;
            PPU_DATA = tile;
        }
    }
    rng = rng_before;
    /* Attributes of 4x4 tiles: palette 3 for the time, 2 for the lives, 1 for the ground. */
    for (row = 0; row < 64; ++row) {
        PPU_DATA = row < 3 ? 0x00 : row < 6 ? 0xFF : row < 8 ? 0xAA : row < 48 ? 0x00 : row < 56 ? 0x50 : 0x55;
    }
}

static void draw_title(void) {
    static u8 i;
    screen_off();
    draw_field();
    write_text(0x2000 + 9 * 32 + 12, "GEMFALL");
    write_text(0x2000 + 14 * 32 + 11, "PUSH START");
    write_text(0x2000 + 17 * 32 + 12, "LEVEL");
    for (i = 0; i < 32; ++i) hud[i] = 0;
    mode = TITLE;
    screen_on();
}

static void draw_status(void) {
    static u16 left;
    static u8 i, digit, fuel;
    left = score;
    /* Subtraction, because division takes half a frame. */
    for (digit = 0; left >= 1000; left -= 1000) ++digit;
    hud[2] = '0' + digit;
    for (digit = 0; left >= 100; left -= 100) ++digit;
    hud[3] = '0' + digit;
    for (digit = 0; left >= 10; left -= 10) ++digit;
    hud[4] = '0' + digit;
    hud[5] = '0' + (u8)left;
    fuel = (u8)(time_left >> 8);
    for (i = 0; i < 11; ++i) hud[12 + i] = i < fuel + (time_left > 0) ? BG_FUEL : 0;
    for (i = 0; i < LIVES; ++i) hud[26 + i] = i < lives ? BG_LIFE : 0;
}

/* ---- sprites */

static void put(u8 x, u8 y, u8 tile, u8 look) {
    oam[used] = y - 1;
    oam[used + 1] = tile;
    oam[used + 2] = look;
    oam[used + 3] = x;
    used += 4;
}

/* Left half of two tiles, one above the other; the right half mirrors it. */
static void put_mirrored(u8 x, u8 y, u8 tile, u8 look) {
    put(x, y, tile, look);
    put(x, y + 8, tile + 1, look);
    put(x + 8, y, tile, look | FLIP_X);
    put(x + 8, y + 8, tile + 1, look | FLIP_X);
}

static void put_rock(u8 x, u8 y) {
    if (y & 32) { /* half a turn, so that it seems to roll */
        put(x + 8, y + 8, TILE_ROCK, PALETTE_ROCK | FLIP_X | FLIP_Y);
        put(x + 8, y, TILE_ROCK + 1, PALETTE_ROCK | FLIP_X | FLIP_Y);
        put(x, y + 8, TILE_ROCK + 2, PALETTE_ROCK | FLIP_X | FLIP_Y);
        put(x, y, TILE_ROCK + 3, PALETTE_ROCK | FLIP_X | FLIP_Y);
        return;
    }
    put(x, y, TILE_ROCK, PALETTE_ROCK);
    put(x, y + 8, TILE_ROCK + 1, PALETTE_ROCK);
    put(x + 8, y, TILE_ROCK + 2, PALETTE_ROCK);
    put(x + 8, y + 8, TILE_ROCK + 3, PALETTE_ROCK);
}

static void put_blast(u8 x, u8 y) {
    put(x, y, TILE_BLAST, PALETTE_FIRE);
    put(x, y + 8, TILE_BLAST, PALETTE_FIRE | FLIP_Y);
    put(x + 8, y, TILE_BLAST, PALETTE_FIRE | FLIP_X);
    put(x + 8, y + 8, TILE_BLAST, PALETTE_FIRE | FLIP_X | FLIP_Y);
}

static void draw_sprites(void) {
    static u8 i;
    used = 0;
    if (!(safe & 4)) {
        put_mirrored(ship_x, SHIP_Y, TILE_SHIP, PALETTE_SHIP);
        put(ship_x - 8, SHIP_Y + 8, TILE_WING, PALETTE_SHIP);
        put(ship_x + 16, SHIP_Y + 8, TILE_WING, PALETTE_SHIP | FLIP_X);
        if (frame & 2) put(ship_x + 4, SHIP_Y + 14, TILE_FLAME, PALETTE_FIRE);
    }
    if (shot_y) put(shot_x, shot_y, TILE_SHOT, PALETTE_FIRE);
    for (i = 0; i < THINGS; ++i) {
        switch (thing_kind[i]) {
        case GEM: put_mirrored(thing_x[i], thing_y[i], TILE_GEM, PALETTE_GEM); break;
        case ROCK: put_rock(thing_x[i], thing_y[i]); break;
        case BLAST: put_blast(thing_x[i], thing_y[i]); break;
        }
    }
    for (i = used; i; i += 4) oam[i] = 0xFF; /* below the screen */
}

/* ---- the game */

static void start_game(void) {
    static u8 i;
    screen_off();
    draw_field();
    for (i = 0; i < THINGS; ++i) thing_kind[i] = NONE;
    score = 0;
    lives = LIVES;
    over = 0;
    time_left = GAME_FRAMES;
    ship_x = MIDDLE;
    shot_y = 0;
    safe = 0;
    until_next = DROP_FRAMES;
    comet_x = MIDDLE;
    mode = PLAY;
    draw_status();
    screen_on();
}

static void set_pace(void) {
    static u16 left;
    left = time_left;
    for (stage = 5; left >= STAGE_FRAMES && stage; left -= STAGE_FRAMES) --stage;
    speed = 0x0240 + ((u16)stage << 3) + ((u16)level << 6);
}

static u8 distance(u8 a, u8 b) { return a > b ? a - b : b - a; }

static void move_ship(void) {
    if ((pad & PAD_LEFT) && ship_x > LEFTMOST) ship_x -= SHIP_SPEED;
    if ((pad & PAD_RIGHT) && ship_x < RIGHTMOST) ship_x += SHIP_SPEED;
    if (safe) --safe;
}

static void move_shot(void) {
    static u8 i;
    if (!shot_y) {
        if (!(pad & PAD_A)) return;
        shot_x = ship_x + 4;
        shot_y = SHIP_Y;
    }
    shot_y = shot_y > 32 ? shot_y - SHOT_SPEED : 0;
    if (!shot_y) return;
    for (i = 0; i < THINGS; ++i) {
        if (thing_kind[i] != ROCK || distance(thing_x[i] + 4, shot_x) >= SHOT_REACH) continue;
        if (distance(thing_y[i] + 4, shot_y) >= SHOT_REACH) continue;
        thing_kind[i] = BLAST;
        thing_part[i] = BLAST_FRAMES;
        score += ROCK_POINTS;
        shot_y = 0;
        return;
    }
}

static void move_comet(void) {
    if (comet_left) comet_x -= level;
    else comet_x += level;
    if (comet_x <= LEFTMOST + 8) comet_left = 0;
    if (comet_x >= RIGHTMOST - 8) comet_left = 1;
}

static void add_thing(void) {
    static u8 i, place;
    move_comet();
    if (--until_next) return;
    until_next = DROP_FRAMES;
    if (random_byte() < TURNS_OF_256) comet_left = !comet_left;
    for (i = 0; i < THINGS && thing_kind[i]; ++i) {}
    if (i == THINGS) return;
    place = random_byte();
    thing_kind[i] = random_byte() < ROCKS_OF_256 ? ROCK : GEM;
    thing_x[i] = thing_kind[i] == GEM ? comet_x : LEFTMOST + place - (place >> 3);
    thing_y[i] = 24;
    thing_part[i] = 0;
}

static void touch_ship(u8 i) {
    if (thing_kind[i] == GEM) {
        score += GEM_POINTS;
        thing_kind[i] = NONE;
    } else if (!safe) {
        thing_kind[i] = BLAST;
        thing_part[i] = BLAST_FRAMES;
        safe = SAFE_FRAMES;
        --lives;
    }
}

static void move_things(void) {
    static u8 i;
    static u16 part;
    for (i = 0; i < THINGS; ++i) {
        if (thing_kind[i] == NONE) continue;
        if (thing_kind[i] == BLAST) {
            if (!--thing_part[i]) thing_kind[i] = NONE;
            continue;
        }
        part = thing_part[i] + speed;
        thing_part[i] = (u8)part;
        thing_y[i] += (u8)(part >> 8);
        if (thing_y[i] >= GROUND_Y) thing_kind[i] = NONE;
        else if (distance(thing_y[i], SHIP_Y) < REACH_Y && distance(thing_x[i], ship_x) < REACH_X) touch_ship(i);
    }
}

static void play(void) {
    set_pace();
    move_ship();
    move_shot();
    add_thing();
    move_things();
    --time_left;
    if (!lives || !time_left) {
        over = 1;
        mode = OVER;
    }
    draw_status();
    draw_sprites();
}

static void choose_level(void) {
    static u8 i;
    for (i = 0; i < 64; ++i) oam[i << 2] = 0xFF;
    used = 0;
    put(18 * 8, 17 * 8, '0' + level, PALETTE_GEM);
    put_mirrored(MIDDLE, 90, TILE_GEM, PALETTE_GEM);
    if (pressed & PAD_SELECT) level = level == LEVELS ? 1 : level + 1;
    if (pressed & PAD_START) start_game();
}

void main(void) {
    rng = 0xACE1;
    level = 1;
    draw_title();
    for (;;) {
        wait_frame();
        ++frame;
        pad_before = pad;
        pad = read_pad();
        pressed = pad & ~pad_before;
        if (pad != pad_before) random_byte(); /* so that what is played changes what falls */
        rng = rng & 1 ? (rng >> 1) ^ 0xB400 : rng >> 1;
        if (mode == TITLE) choose_level();
        else if (mode == PLAY) play();
        else if (pressed & PAD_START) draw_title();
    }
}
